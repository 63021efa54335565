//! Where a mailbox's value lives.

/// The bytes of one value: a Redis string in the module, a vector in simulations and tests.
pub trait Value {
    /// The value; empty if there is none yet.
    fn bytes(&mut self) -> &mut [u8];
    /// Gives it another length; bytes that are added are zero.
    fn resize(&mut self, len: usize);
}

impl Value for Vec<u8> {
    fn bytes(&mut self) -> &mut [u8] {
        self
    }

    fn resize(&mut self, len: usize) {
        Self::resize(self, len, 0);
    }
}
