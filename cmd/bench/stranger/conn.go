package stranger

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// request is an HTTP/1.1 request. It can be sent several times.
type request struct {
	method, path string   // the path with its query, after the API's base
	key          string   // "" for none
	headers      []string // additional ones, each as "Name: value"
	body         content
}

// content is a body, which is made while it is sent: large ones are never in memory. The zero content means that there is no body.
type content struct {
	length   int64
	open     func() io.Reader
	mimeType string
}

// textContent returns a body with a text.
func textContent(mimeType, text string) content {
	return content{int64(len(text)), func() io.Reader { return strings.NewReader(text) }, mimeType}
}

// jsonContent returns a body of JSON.
func jsonContent(text string) content { return textContent("application/json", text) }

// encodeHead returns the request line and the headers, with the empty line that ends them.
func (r request) encodeHead(host string) []byte {
	head := fmt.Appendf(nil, "%s %s%s HTTP/1.1\r\nHost: %s\r\n", r.method, apiBase, r.path, host)
	if r.key != "" {
		head = fmt.Appendf(head, "Authorization: Bearer %s\r\n", r.key)
	}
	for _, h := range r.headers {
		head = fmt.Appendf(head, "%s\r\n", h)
	}
	if r.body.open != nil {
		head = fmt.Appendf(head, "Content-Type: %s\r\nContent-Length: %d\r\n", r.body.mimeType, r.body.length)
	}
	return append(head, "\r\n"...)
}

// conn is one connection of a client. The caller decides when which bytes are written and read, which no HTTP client allows. It is not
// safe for concurrent use, except that one goroutine may write while another one reads.
type conn struct {
	net.Conn
	reader      *bufio.Reader
	host        string
	unhook      func() bool
	interrupted chan struct{} // closed once the end of the context has set the deadline
}

// The source addresses on the loopback: limits by address then apply to the customers and the stranger separately.
var (
	honestSource   = net.IPv4(127, 0, 0, 1)
	strangerSource = net.IPv4(127, 0, 0, 2)
)

// dial connects to a host from a source address. When ctx ends, running and later reads and writes fail with a timeout; the
// connection stays open until close.
func dial(ctx context.Context, source net.IP, host string) (*conn, error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: source}, Timeout: answerTimeout}
	c, err := d.DialContext(ctx, "tcp", host)
	if err != nil {
		return nil, err
	}
	interrupted := make(chan struct{})
	unhook := context.AfterFunc(ctx, func() {
		defer close(interrupted)
		c.SetDeadline(time.Unix(1, 0))
	})
	return &conn{c, bufio.NewReader(c), host, unhook, interrupted}, nil
}

// continueFor lets reads and writes continue for a moment although the context has ended. It is called once.
func (c *conn) continueFor(d time.Duration) {
	if !c.unhook() {
		<-c.interrupted // otherwise the end of the context could set its deadline after this one
	}
	c.SetDeadline(time.Now().Add(d))
}

// close ends the connection with a reset, so that thousands of them leave no port waiting.
func (c *conn) close() {
	c.unhook()
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		tcp.SetLinger(0) // if this fails, the connection is closed without a reset
	}
	c.Conn.Close()
}

// send writes a request. A service that refuses it may answer before it has read the body, so the answer is read after an error too.
func (c *conn) send(r request) error {
	if _, err := c.Write(r.encodeHead(c.host)); err != nil || r.body.open == nil {
		return err
	}
	_, err := io.Copy(c, r.body.open())
	return err
}

// receive reads the head of an answer. The caller reads its body.
func (c *conn) receive() (*http.Response, error) { return http.ReadResponse(c.reader, nil) }

// exchange sends a request and reads its whole answer. isKept reports whether the connection can be used again.
func (c *conn) exchange(r request) (status int, isKept bool, err error) {
	sendErr := c.send(r)
	resp, err := c.receive()
	if err != nil {
		return 0, false, errors.Join(sendErr, err)
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, sendErr == nil && err == nil && !resp.Close, err
}
