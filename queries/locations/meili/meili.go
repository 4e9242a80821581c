// Package meili searches sites in a Meilisearch server: the documents an account's sites are there, how they are kept
// as the tables have them, and the questions. The server only finds and orders ids: every site in an answer is read
// from the read model and judged again, so that nothing of another account can come out, whatever the index holds.
package meili

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/meilisearch/meilisearch-go"

	"lieudit/eventstore/sqldb"
)

// Index is the index of sites on a server. It is safe for concurrent use.
type Index struct {
	server   meilisearch.ServiceManager
	registry *sqldb.Registry
	timeout  time.Duration
	identity indexIdentity
}

// Server says where a server is and how it is reached.
type Server struct {
	URL       string            // http://127.0.0.1:7700
	Key       string            // of its API, "" for none
	Transport http.RoundTripper // Direct unless set
	Index     string            // the name of the index; one that tells settings and logs apart unless set
	Timeout   time.Duration     // with a question; 5 s unless set
}

// New is the index on a server, of the sites whose rows are on a shelf. Nothing is asked before it is used.
func New(s Server, registry *sqldb.Registry) *Index {
	return &Index{server: s.Client(), registry: registry, timeout: cmp.Or(s.Timeout, searchTimeout), identity: indexIdentity{name: s.Index}}
}

// Client is how the server is reached. Nothing is tried again by itself, and no call goes on for ever.
func (s Server) Client() meilisearch.ServiceManager {
	if s.Transport == nil {
		s.Transport = NewTransport()
	}
	client := &http.Client{Transport: s.Transport, Timeout: callTimeout}
	return meilisearch.New(s.URL, meilisearch.WithAPIKey(s.Key), meilisearch.WithCustomClient(client), meilisearch.DisableRetries())
}

// NewTransport is a transport that asks for no compression: the server sends what it compresses in pieces, and waits 40 ms for the
// client's system to acknowledge the first.
func NewTransport() *http.Transport {
	t := &http.Transport{Proxy: http.ProxyFromEnvironment, DisableCompression: true, MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Minute}
	t.DialContext = (&net.Dialer{Timeout: searchTimeout}).DialContext
	return t
}

const (
	callTimeout   = 30 * time.Second // for one call, documents in their thousands among them
	searchTimeout = 5 * time.Second
)

// ParseServer reads the address of a server as it is configured, http://KEY@HOST:PORT, where the key may be left out.
func ParseServer(address string) (Server, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return Server{}, errors.New("the address of a Meilisearch server is of the form http://KEY@HOST:PORT") // a key may be in it
	}
	s := Server{Key: u.User.Username()}
	if password, ok := u.User.Password(); ok {
		s.Key = password
	}
	u.User = nil
	s.URL = strings.TrimRight(u.String(), "/")
	return s, nil
}

// wrapError is an error of the library in a line, with what ended it in reach of errors.Is.
func wrapError(operation string, err error) error {
	var e *meilisearch.Error
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &e):
	case e.OriginError != nil:
		err = e.OriginError
	case e.MeilisearchApiError.Code != "":
		err = &apiError{e.StatusCode, e.MeilisearchApiError.Code, e.MeilisearchApiError.Message}
	default:
		err = fmt.Errorf("answered with status %d", e.StatusCode)
	}
	return fmt.Errorf("meilisearch: %s: %w", operation, err)
}

// apiError is what the server says is wrong.
type apiError struct {
	status        int
	code, message string
}

func (e *apiError) Error() string { return e.code + ": " + e.message }

// errorCode is the server's word for what is wrong, "" where it did not say.
func errorCode(err error) string {
	var e *apiError
	if errors.As(err, &e) {
		return e.code
	}
	return ""
}
