//! The remote browser and the page that shows it: input, keyboard and screen readers, languages, slow
//! networks and interruptions, fleets and egress proxies.

mod contact_sheet;
mod egress_proxy;
mod embed_page;
mod fleet;
mod input;
mod interruptions;
mod keyboard;
mod screen_reader;
mod slow_network;
