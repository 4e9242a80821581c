// Package adminclient is the HTTP client of the command line, for the customer area and for the API. It sends requests
// with a token, follows the cursors of lists and turns refusals into errors that people can read. It keeps JSON byte for
// byte as the service sent it, so that commands can print fields that this release does not know.
//
// New or NewAPI makes a Client. Get, Post, Put, PostForList and Download send one request, List one for each page. The
// client does not retry: its caller decides whether a write may be repeated. A request without an answer is an
// *UnreachableError, an answer with a status other than 2xx an *APIError; other errors are about the body of the answer.
package adminclient

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Base paths of the customer area and the API on their listeners.
const (
	CustomerAreaPath = "/customer-area/v1"
	APIPath          = "/services/v1"
)

const (
	requestTimeout   = time.Minute // of one request, its answer included
	maxResponseBytes = 64 << 20    // of an answer that is read whole
)

// errTooLarge means that an answer has more than maxResponseBytes. Lists have pages and exports are downloaded, so no answer needs more.
var errTooLarge = fmt.Errorf("it is larger than %d MiB", maxResponseBytes>>20)

// Client sends requests to one customer area or one API with one token. It is safe for concurrent use. The paths that its
// methods take begin with a slash and follow the base path; JoinPath builds them.
type Client struct {
	address    string // scheme and host, without a slash at the end
	basePath   string // CustomerAreaPath or APIPath
	token      string
	header     http.Header // of every request, besides; may be nil
	httpClient *http.Client
}

// New returns a client of the customer area whose listener is at address, such as http://127.0.0.1:8081. It does not
// connect: an error is about the form of the address.
func New(address, token string) (*Client, error) { return newClient(address, CustomerAreaPath, token) }

// NewAPI returns a client of the API whose listener is at address, such as http://127.0.0.1:8080, with a secret key. It
// does not connect: an error is about the form of the address.
func NewAPI(address, key string) (*Client, error) { return newClient(address, APIPath, key) }

// newClient accepts an address with or without the base path: the service prints it with the path, the flags hold it
// without.
func newClient(address, basePath, token string) (*Client, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, fmt.Errorf("%q is not an address of the form http://127.0.0.1:8081", address)
	}
	return &Client{
		address:  strings.TrimRight(strings.TrimSuffix(strings.TrimRight(address, "/"), basePath), "/"),
		basePath: basePath,
		token:    token,
		httpClient: &http.Client{
			Timeout: requestTimeout,
			// A redirect is returned as it is: following one would send the token elsewhere.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// WithoutTimeout returns a copy of the client that waits for an answer as long as the context allows. It shares its
// connections with the original.
func (c *Client) WithoutTimeout() *Client {
	copied, unlimited := *c, *c.httpClient
	unlimited.Timeout = 0
	copied.httpClient = &unlimited
	return &copied
}

// WithHeader returns a copy of the client whose requests have a header. It shares its connections with the original.
func (c *Client) WithHeader(name, value string) *Client {
	copied := *c
	copied.header = c.header.Clone()
	if copied.header == nil {
		copied.header = http.Header{}
	}
	copied.header.Set(name, value)
	return &copied
}

// JoinPath joins segments to a path and appends the verb after a colon: JoinPath("close", "accounts", "a") is
// /accounts/a:close. An empty verb adds nothing. Each segment is escaped, its colons too, so that no id can be read as a
// further segment or as a verb. The verb is not escaped.
func JoinPath(verb string, segments ...string) string {
	var path strings.Builder
	for _, s := range segments {
		path.WriteString("/" + strings.ReplaceAll(url.PathEscape(s), ":", "%3A"))
	}
	if verb != "" {
		path.WriteString(":" + verb)
	}
	return path.String()
}

// Get returns the JSON at a path. Query may be nil.
func (c *Client) Get(ctx context.Context, path string, query url.Values) (json.RawMessage, error) {
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return c.sendJSON(ctx, http.MethodGet, path, nil)
}

// Post sends a body, encoded as JSON, and returns the JSON of the answer.
func (c *Client) Post(ctx context.Context, path string, body any) (json.RawMessage, error) {
	return c.sendJSON(ctx, http.MethodPost, path, body)
}

// Put sends a body, encoded as JSON, and returns the JSON of the answer.
func (c *Client) Put(ctx context.Context, path string, body any) (json.RawMessage, error) {
	return c.sendJSON(ctx, http.MethodPut, path, body)
}

// Delete deletes what is at a path, and returns the JSON of the answer.
func (c *Client) Delete(ctx context.Context, path string) (json.RawMessage, error) {
	return c.sendJSON(ctx, http.MethodDelete, path, nil)
}

// List yields the results of a list, page after page; it requests a page when the results before it are used up. An error
// is yielded last, with a nil result. Each run of the iterator begins at the first page. Query may be nil and is not
// changed.
func (c *Client) List(ctx context.Context, path string, query url.Values) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		pageQuery := url.Values{} // fetchPage writes the cursor into it
		maps.Copy(pageQuery, query)
		for cursor, more := "", true; more; more = cursor != "" {
			page, err := c.fetchPage(ctx, path, pageQuery, cursor)
			if err != nil {
				yield(nil, err)
				return
			}
			if !page.yieldResults(yield) {
				return
			}
			cursor = page.Cursor
		}
	}
}

// PostForList sends a body and yields the results of the list in the answer, which has one page. If the request fails, it
// yields only the error. Each run of the iterator sends the request.
func (c *Client) PostForList(ctx context.Context, path string, body any) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		var p listPage
		raw, err := c.Post(ctx, path, body)
		if err == nil {
			err = json.Unmarshal(raw, &p)
		}
		if err != nil {
			yield(nil, err)
			return
		}
		p.yieldResults(yield)
	}
}

// listPage is one page of a list. Cursor is "" on the last one.
type listPage struct {
	Results []json.RawMessage `json:"results"`
	Cursor  string            `json:"curseur"`
}

// yieldResults passes the results to yield. It returns false when yield has ended the iteration.
func (p listPage) yieldResults(yield func(json.RawMessage, error) bool) bool {
	for _, r := range p.Results {
		if !yield(r, nil) {
			return false
		}
	}
	return true
}

// fetchPage requests the page at a cursor, "" for the first, and sets the cursor in query. A page whose cursor is the one
// that was sent would make the list endless, so it is an error.
func (c *Client) fetchPage(ctx context.Context, path string, query url.Values, cursor string) (listPage, error) {
	var p listPage
	if cursor != "" {
		query.Set("curseur", cursor)
	}
	raw, err := c.Get(ctx, path, query)
	if err != nil {
		return p, err
	}
	if err := json.Unmarshal(raw, &p); err != nil {
		return p, fmt.Errorf("reading the list %s: %w", path, err)
	}
	if cursor != "" && p.Cursor == cursor {
		return p, fmt.Errorf("the list %s does not end: its cursor stands still", path)
	}
	return p, nil
}

// Download copies the body at a path to out as it arrives, so its size is not limited. After an error out may hold part
// of the body.
func (c *Client) Download(ctx context.Context, path string, query url.Values, out io.Writer) error {
	resp, err := c.sendRequest(ctx, http.MethodGet, path+"?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(out, resp.Body); err != nil {
		return fmt.Errorf("reading the answer of GET %s: %w", path, err)
	}
	return nil
}

// sendRequest sends a request and returns an answer of status 2xx, whose body the caller closes.
func (c *Client) sendRequest(ctx context.Context, method, path string, body any) (*http.Response, error) {
	req, err := c.newRequest(ctx, method, path, body)
	if err != nil {
		return nil, err
	}
	resp, err := c.httpClient.Do(req)
	if err != nil {
		return nil, &UnreachableError{Address: c.address, Err: err}
	}
	if resp.StatusCode/100 == 2 {
		return resp, nil
	}
	responseBody, err := readBody(resp, method, path)
	if err != nil {
		return nil, err
	}
	return nil, newAPIError(resp.StatusCode, path, responseBody)
}

// readBody reads and closes the body of an answer. One of more than maxResponseBytes is an error.
func readBody(resp *http.Response, method, path string) ([]byte, error) {
	defer resp.Body.Close()
	content, err := io.ReadAll(io.LimitReader(resp.Body, maxResponseBytes+1))
	if err == nil && len(content) > maxResponseBytes {
		err = errTooLarge
	}
	if err != nil {
		return nil, fmt.Errorf("reading the answer of %s %s: %w", method, path, err)
	}
	return content, nil
}

// sendJSON sends a request whose answer must be JSON: another answer comes from a server that is not lieudit.
func (c *Client) sendJSON(ctx context.Context, method, path string, body any) (json.RawMessage, error) {
	resp, err := c.sendRequest(ctx, method, path, body)
	if err != nil {
		return nil, err
	}
	responseBody, err := readBody(resp, method, path)
	if err != nil {
		return nil, err
	}
	if !json.Valid(responseBody) {
		return nil, fmt.Errorf("the answer of %s %s is no JSON: is this a lieudit service?", method, path)
	}
	return responseBody, nil
}

// newRequest builds a request with the token. A body is encoded as JSON; nil sends none.
func (c *Client) newRequest(ctx context.Context, method, path string, body any) (*http.Request, error) {
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("writing the body of %s %s: %w", method, path, err)
		}
		content = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.address+c.basePath+path, content)
	if err != nil {
		return nil, fmt.Errorf("asking %s: %w", c.address, err)
	}
	maps.Copy(req.Header, c.header)
	req.Header.Set("Authorization", "Bearer "+c.token)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return req, nil
}
