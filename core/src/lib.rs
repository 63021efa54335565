//! The decision of mailrl: a mailbox's budget in two windows, as a pure function over the bytes of one value.
