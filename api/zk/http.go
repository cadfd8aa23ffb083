package zk

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"

	"github.com/zk-lite/zk-lite/internal/tlsport"
)

// maxRequestHead bounds an HTTP request line with its headers.
const maxRequestHead = 4 << 10

// EnsembleHeader has the ensemble's id in hexadecimal, so that a client that was led elsewhere can notice.
const EnsembleHeader = "Zk-Ensemble"

// HTTPPort is where a server's HTTP port is.
type HTTPPort struct {
	Addr  netip.AddrPort // that it listens on
	TLS   bool           // it speaks TLS
	Plain bool           // it speaks without TLS
}

// serveOther answers a client that speaks TLS or HTTP. One of HTTP is a browser, or looks for the HTTP API: it is sent
// to the HTTP port. The deadline of the handshake bounds how long it may take to ask.
func (c *conn) serveOther(speech tlsport.Speech) error {
	if speech == tlsport.HTTP {
		head := io.LimitReader(io.MultiReader(bytes.NewReader(c.in.waiting()), c.net), maxRequestHead)
		if q, err := http.ReadRequest(bufio.NewReaderSize(head, smallInput)); err == nil {
			c.out.countReceived(c.in.have())
			tlsport.Say(c.net, c.redirect(q))
			return nil
		}
	}
	tlsport.AnswerPlain(c.net, speech)
	without := " without TLS"
	if _, secure := c.net.(*tlsport.Conn); secure {
		without = ""
	}
	return badf("the client speaks %s, and this port ZooKeeper's protocol%s", speech, without)
}

// redirect is the answer to an HTTP request.
func (c *conn) redirect(q *http.Request) string {
	_, secure := tlsport.State(c.net)
	status, headers := http.StatusTemporaryRedirect, ""
	at, why := c.listener.cfg.HTTP.locate(q, c.localAddress(), c.address, secure)
	text := "This port speaks ZooKeeper's protocol. "
	if why != "" {
		status, text = http.StatusNotFound, text+why+"\n"
	} else {
		text += "The HTTP API of this server is at " + at + "\n"
		headers = fmt.Sprintf("Location: %s\r\n%s: %x\r\n", at, EnsembleHeader, c.listener.srv.Status().Ensemble)
	}
	answer := fmt.Sprintf("HTTP/1.1 %d %s\r\n%sCache-Control: no-store\r\nContent-Type: text/plain; charset=utf-8\r\n"+
		"Content-Length: %d\r\nConnection: close\r\n\r\n", status, http.StatusText(status), headers, len(text))
	if q.Method != http.MethodHead {
		answer += text
	}
	return answer
}

// locate returns where a client finds at the HTTP port what it asks for here, or why it does not. here is this
// server's address of the connection; the connection may be secure.
func (p *HTTPPort) locate(q *http.Request, here, client netip.Addr, secure bool) (at, why string) {
	if p == nil {
		return "", "This server has no HTTP port (admin.enableServer=false)."
	}
	ip := p.Addr.Addr().Unmap()
	if ip.IsLoopback() && !client.IsLoopback() && client != here {
		return "", fmt.Sprintf("The HTTP port of this server listens on %v only (admin.serverAddress).", p.Addr)
	}
	host := ip.String()
	if ip.IsUnspecified() || ip == here { // the name that the client knows leads there, too
		host = here.String()
		if u, err := url.Parse("//" + q.Host); err == nil && u.Hostname() != "" {
			host = u.Hostname()
		}
	}
	target := url.URL{
		Scheme: "http", Host: net.JoinHostPort(host, strconv.Itoa(int(p.Addr.Port()))),
		Path: q.URL.Path, RawPath: q.URL.RawPath, RawQuery: q.URL.RawQuery,
	}
	if p.TLS && (secure || !p.Plain) {
		target.Scheme = "https"
	}
	return target.String(), ""
}

// localAddress is this server's address of the connection.
func (c *conn) localAddress() netip.Addr {
	if ap, err := netip.ParseAddrPort(c.net.LocalAddr().String()); err == nil {
		return ap.Addr().Unmap().WithZone("")
	}
	return netip.Addr{}
}
