package measure

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
)

// EncodeGet returns the bytes of a GET of a path, query included, with a key. host is the address that Dial connects to. A
// benchmark makes the bytes once and sends them many times.
func EncodeGet(host, path, key string) []byte {
	return fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n", path, host, key)
}

// Client is one HTTP/1.1 connection, which is kept open between requests. It parses the status and the length of an answer
// and discards the rest. It is not safe for concurrent use.
type Client struct {
	conn            net.Conn
	reader          *bufio.Reader
	stopCloseOnDone func() bool
	failure         []byte // see Failure
}

// Dial connects to an address of the form host:port. When ctx ends, the connection is closed, which ends a running Send.
func Dial(ctx context.Context, address string) (*Client, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return &Client{conn: conn, reader: bufio.NewReader(conn), stopCloseOnDone: context.AfterFunc(ctx, func() { conn.Close() })}, nil
}

// Close ends the connection.
func (c *Client) Close() {
	c.stopCloseOnDone()
	c.conn.Close() // its error concerns nobody any more
}

// Send sends a request and returns the status of its answer once the whole answer has come. The answer must state its
// length. After an error the connection cannot be used any more, and whether the request was served is not known.
func (c *Client) Send(request []byte) (status int, err error) {
	if _, err := c.conn.Write(request); err != nil {
		return 0, err
	}
	line, err := c.reader.ReadSlice('\n')
	if err != nil {
		return 0, err
	}
	// The status is the three digits after the protocol version and a blank.
	if len(line) < len("HTTP/1.1 200") {
		return 0, errMalformedAnswer
	}
	if status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return 0, errMalformedAnswer
	}
	length, err := c.readContentLength()
	if err != nil {
		return 0, err
	}
	if c.failure = nil; status >= http.StatusInternalServerError {
		c.failure = make([]byte, length)
		_, err = io.ReadFull(c.reader, c.failure)
		return status, err
	}
	_, err = c.reader.Discard(length)
	return status, err
}

// Failure returns the body of the last answer if its status is from 500 on: it says why the service could not serve the request.
func (c *Client) Failure() string { return string(c.failure) }

var (
	errMalformedAnswer = errors.New("no HTTP/1.1 answer of a stated length")
	lengthHeader       = []byte("Content-Length:")
)

// readContentLength reads the headers to their end, which is an empty line, and returns the length that they state. Without a
// stated length it is an error: chunked answers are not supported.
func (c *Client) readContentLength() (int, error) {
	length := -1
	for {
		line, err := c.reader.ReadSlice('\n')
		switch {
		case err != nil:
			return 0, err
		case len(line) <= 2 && length < 0:
			return 0, fmt.Errorf("%w: %w", errMalformedAnswer, io.ErrUnexpectedEOF)
		case len(line) <= 2:
			return length, nil
		}
		if len(line) > len(lengthHeader) && bytes.EqualFold(line[:len(lengthHeader)], lengthHeader) {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(line[len(lengthHeader):]))); err != nil {
				return 0, errMalformedAnswer
			}
		}
	}
}
