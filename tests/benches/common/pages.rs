//! The pages that both the service and the baseline show: a sign-in, the same with an animation,
//! and a long page.

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

pub(crate) const HOST: &str = "bench.localhost";
const HEAD: &str = "<!doctype html><meta charset=utf-8><style>body{font:17px/1.5 system-ui,sans-serif;margin:0; \
    background:linear-gradient(120deg,#f6f1fa,#d8e8ff)}main{max-width:420px;margin:40px auto;padding:24px;background:#fff; \
    border-radius:12px;box-shadow:0 10px 40px #0003}input{width:100%;font:inherit;padding:9px;box-sizing:border-box} \
    .spin{width:36px;height:36px;border:4px solid #ccc;border-top-color:#7a1fa2;border-radius:50%;animation:t 1s linear infinite} \
    @keyframes t{to{transform:rotate(1turn)}}</style>";
const FORM: &str = "<main><h1>Sign in</h1><label>User name <input id=name></label><p>We will ask for a password next. \
    Forgotten? Write to us.</p></main><script>const f=document.getElementById('name');f.focus();setInterval(()=>f.focus(),200)</script>";

/// A web site of the benchmark.
pub(crate) struct Pages {
    port: u16,
}

impl Pages {
    pub(crate) async fn serve() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("its address").port();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let mut request = [0; 4096];
                    let read = stream.read(&mut request).await.unwrap_or_default();
                    let request = String::from_utf8_lossy(&request[..read]).into_owned();
                    let body = page(request.split(' ').nth(1).unwrap_or_default());
                    let length = body.len();
                    let answer = format!(
                        "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
                    );
                    let _ = stream.write_all(answer.as_bytes()).await;
                });
            }
        });
        Self { port }
    }

    pub(crate) fn authority(&self) -> String {
        format!("{HOST}:{}", self.port)
    }

    pub(crate) fn url(&self, page: &str) -> String {
        format!("http://{}/{page}", self.authority())
    }
}

pub(crate) fn page(path: &str) -> String {
    match path {
        "/spin" => format!("{HEAD}<div class=spin></div>{FORM}"),
        "/feed" => {
            let posts = (0..200).map(|at| {
                let (hue, text) = (at * 37 % 360, "The quick brown fox jumps over the lazy dog. ".repeat(4));
                format!("<main><h2>Post {at}</h2><div style='height:120px;background:linear-gradient(90deg,hsl({hue} 70% 60%),#fff)'></div><p>{text}</p></main>")
            });
            format!("{HEAD}<input id=name>{}", posts.collect::<String>())
        }
        _ => format!("{HEAD}{FORM}"),
    }
}
