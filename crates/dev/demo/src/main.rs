//! `avouch-demo`: a demo partner with a page that embeds a session.

use clap::Parser;
use demo::Options;

#[actix_web::main]
async fn main() -> std::io::Result<()> {
    let options = Options::parse();
    let address = options.listen;
    let partner = demo::serve(options)?;
    println!("the demo partner's page is http://localhost:{}", address.port());
    partner.await
}
