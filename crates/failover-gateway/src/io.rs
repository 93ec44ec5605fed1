//! A client's connection: bytes in and out, and an end to clients that take nothing.

use failover::types::{BoxFuture, Clock};
use hyper_util::rt::TokioIo;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// A socket whose writes must get on within a limit: a client that reads nothing would hold its answer for ever.
pub(crate) struct Patient {
    tcp: TcpStream,
    clock: Arc<dyn Clock>,
    limit: Duration,
    /// Runs while a write is stuck.
    stuck: Option<BoxFuture<'static, ()>>,
}

impl Patient {
    /// What hyper reads and writes.
    pub(crate) fn new(tcp: TcpStream, clock: Arc<dyn Clock>, limit: Duration) -> TokioIo<Self> {
        TokioIo::new(Self { tcp, clock, limit, stuck: None })
    }

    fn watch<T>(&mut self, written: Poll<io::Result<T>>, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stuck = None;
            return written;
        }
        let (clock, limit) = (&self.clock, self.limit);
        let stuck = self.stuck.get_or_insert_with(|| {
            let clock = Arc::clone(clock);
            Box::pin(async move { clock.sleep_until(clock.now().after(limit)).await })
        });
        stuck.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Patient {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_read(cx, buf)
    }
}

impl AsyncWrite for Patient {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.tcp).poll_write(cx, buf);
        self.watch(written, cx)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.tcp).poll_write_vectored(cx, bufs);
        self.watch(written, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.tcp.is_write_vectored()
    }
}
