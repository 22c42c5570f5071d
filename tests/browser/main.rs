//! The remote browser and the page that shows it: input, languages, slow networks, fleets and
//! egress proxies.

mod egress_proxy;
mod embed_page;
mod fleet;
mod input;
mod slow_network;
