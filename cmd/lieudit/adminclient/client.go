// Package adminclient is a client of the customer area, and of the API that customers use: it sends requests with a
// token, follows the cursors of lists and turns refusals into errors that people can read. It keeps the JSON as it came,
// so that a program that pipes it on loses nothing.
package adminclient

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// BasePath is where the customer area begins on its listener, APIPath where the API does on its.
const (
	CustomerAreaPath = "/customer-area/v1"
	APIPath          = "/services/v1"
)

const (
	requestTimeout   = time.Minute // for one answer
	maxResponseBytes = 64 << 20
)

// Client asks one customer area, or one API, with one token. It is safe for concurrent use.
type Client struct {
	address, basePath, token string
	httpClient               *http.Client
}

// New makes a client of the customer area whose listener is at address, such as http://127.0.0.1:8081.
func New(address, token string) (*Client, error) { return newClient(address, CustomerAreaPath, token) }

// NewAPI makes a client of the API whose listener is at address, such as http://127.0.0.1:8080, with a secret key.
func NewAPI(address, key string) (*Client, error) { return newClient(address, APIPath, key) }

func newClient(address, path, token string) (*Client, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, fmt.Errorf("%q is not an address of the form http://127.0.0.1:8081", address)
	}
	return &Client{
		address:  strings.TrimRight(strings.TrimSuffix(strings.TrimRight(address, "/"), path), "/"),
		basePath: path,
		token:    token,
		httpClient: &http.Client{
			Timeout: requestTimeout,
			// A token is not carried elsewhere.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// WithoutTimeout is the client with all the time that an answer takes.
func (c *Client) WithoutTimeout() *Client {
	copied, unlimited := *c, *c.httpClient
	unlimited.Timeout = 0
	copied.httpClient = &unlimited
	return &copied
}

// JoinPath joins segments, each escaped, to a path of the API; verb, when there is one, ends it behind a colon.
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

// Get returns the JSON at a path.
func (c *Client) Get(ctx context.Context, path string, query url.Values) (json.RawMessage, error) {
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return c.sendJSON(ctx, http.MethodGet, path, nil)
}

// Post sends a body and returns the JSON of the answer.
func (c *Client) Post(ctx context.Context, path string, body any) (json.RawMessage, error) {
	return c.sendJSON(ctx, http.MethodPost, path, body)
}

// Put sends a body and returns the JSON of the answer.
func (c *Client) Put(ctx context.Context, path string, body any) (json.RawMessage, error) {
	return c.sendJSON(ctx, http.MethodPut, path, body)
}

// List yields the results of a list, page after page until the last. After an error it ends.
func (c *Client) List(ctx context.Context, path string, query url.Values) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		query = cloneQuery(query)
		for cursor, more := "", true; more; more = cursor != "" {
			page, err := c.fetchPage(ctx, path, query, cursor)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, r := range page.Results {
				if !yield(r, nil) {
					return
				}
			}
			cursor = page.Cursor
		}
	}
}

// PostForList sends a body and yields the results of the list that is the answer.
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
		for _, r := range p.Results {
			if !yield(r, nil) {
				return
			}
		}
	}
}

type listPage struct {
	Results []json.RawMessage `json:"results"`
	Cursor  string            `json:"curseur"`
}

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

func cloneQuery(query url.Values) url.Values {
	out := url.Values{}
	for k, v := range query {
		out[k] = v
	}
	return out
}

// Download writes what is at a path as it comes, whatever it is.
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

// sendRequest sends a request. An answer that is no success is an error.
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
	defer resp.Body.Close()
	responseBody, err := io.ReadAll(io.LimitReader(resp.Body, maxResponseBytes))
	if err != nil {
		return nil, fmt.Errorf("reading the answer of %s %s: %w", method, path, err)
	}
	return nil, newAPIError(resp.StatusCode, path, responseBody)
}

func (c *Client) sendJSON(ctx context.Context, method, path string, body any) (json.RawMessage, error) {
	resp, err := c.sendRequest(ctx, method, path, body)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	responseBody, err := io.ReadAll(io.LimitReader(resp.Body, maxResponseBytes))
	if err != nil {
		return nil, fmt.Errorf("reading the answer of %s %s: %w", method, path, err)
	}
	if !json.Valid(responseBody) {
		return nil, fmt.Errorf("the answer of %s %s is no JSON: is this a lieudit service?", method, path)
	}
	return responseBody, nil
}

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
	req.Header.Set("Authorization", "Bearer "+c.token)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return req, nil
}
