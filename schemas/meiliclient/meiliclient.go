// Package meiliclient connects to a Meilisearch server: it parses the configured address, sets the time limits, and turns the
// library's errors into one line. The server holds the indexes of sites (filled by projections/searchindex/meili, searched by
// queries/locations/meili) and of addresses (queries/address/meili).
package meiliclient

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/meilisearch/meilisearch-go"
)

// Server is where a server is and how to reach it.
type Server struct {
	URL       string            // such as http://127.0.0.1:7700, without a slash at the end
	Key       string            // of its API, or ""
	Transport http.RoundTripper // NewTransport() unless set
	Index     string            // the name of the index; "" means the default of the package that uses the index
	Timeout   time.Duration     // of a search; 0 means the default of the package that searches
}

const (
	callTimeout = 30 * time.Second // of one call, which may send thousands of documents
	dialTimeout = 5 * time.Second
)

// ParseServer parses the configured address of a server, http://KEY@HOST:PORT. The key may be left out. In
// http://USER:PASSWORD@HOST:PORT the password is the key. The error never shows the address, because it may contain a key.
func ParseServer(address string) (Server, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return Server{}, errors.New("the address of a Meilisearch server is of the form http://KEY@HOST:PORT")
	}
	s := Server{Key: u.User.Username()}
	if password, ok := u.User.Password(); ok {
		s.Key = password
	}
	u.User = nil
	s.URL = strings.TrimRight(u.String(), "/")
	return s, nil
}

// Client makes a client of the server. It does not retry, and it ends each call after 30 s.
func (s Server) Client() meilisearch.ServiceManager {
	if s.Transport == nil {
		s.Transport = NewTransport()
	}
	client := &http.Client{Transport: s.Transport, Timeout: callTimeout}
	return meilisearch.New(s.URL, meilisearch.WithAPIKey(s.Key), meilisearch.WithCustomClient(client), meilisearch.DisableRetries())
}

// NewTransport makes a transport that does not accept compression: the server sends compressed data in pieces, and waits 40 ms
// for the client's system to acknowledge the first.
func NewTransport() *http.Transport {
	t := &http.Transport{Proxy: http.ProxyFromEnvironment, DisableCompression: true, MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Minute}
	t.DialContext = (&net.Dialer{Timeout: dialTimeout}).DialContext
	return t
}

// WrapError wraps an error of the library in one line, with its cause available to errors.As: an *APIError if the server
// refused the call, or the error of the context or the connection. It returns nil for a nil err.
func WrapError(operation string, err error) error {
	var e *meilisearch.Error
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &e):
	case e.OriginError != nil:
		err = e.OriginError
	case e.APIError.Code != "":
		err = &APIError{string(e.APIError.Code), e.APIError.Message}
	default:
		err = fmt.Errorf("answered with status %d", e.StatusCode)
	}
	return fmt.Errorf("meilisearch: %s: %w", operation, err)
}

// APIError is the server's reason for refusing a call, or for the failure of a task.
type APIError struct{ Code, Message string }

func (e *APIError) Error() string { return e.Code + ": " + e.Message }

// ErrorCode is the server's error code, such as index_not_found, or "" if the server gave none.
func ErrorCode(err error) string {
	var e *APIError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}
