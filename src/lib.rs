//! The Redis module.
