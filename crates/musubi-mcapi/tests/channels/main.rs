//! Channels between two and three engines: every function of them in MCAPI's list, every order, every crossing, loss, and what a
//! hostile peer may try. Names of tests begin with the numbers of the functions in the list (20 to 45).

mod cost;
mod crossing;
mod data;
mod floods;
mod functions;
mod hostile;
mod losses;
mod messages;
mod orders;
mod polled;
mod random;
mod traffic;
mod world;
