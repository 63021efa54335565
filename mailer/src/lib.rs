//! Sends mail through Microsoft Graph as a lettre transport.
