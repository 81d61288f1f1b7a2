//! Servers and faults for the tests of this workspace.
