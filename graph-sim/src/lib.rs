//! A local stand-in for Microsoft Graph that holds senders to Microsoft's limits.
