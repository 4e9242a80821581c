package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"lieudit/cmd/lieudit/adminclient"
)

// requestTimeout is how long a request may take. The service tries for less than that to find out what became of a write.
const requestTimeout = 100 * time.Second

// httpClient sends each request over a new connection. So the transport never sends one twice, and a broken connection
// concerns exactly one request.
var httpClient = &http.Client{Timeout: requestTimeout, Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true}}

// request is a request to the API, or to another server of an instance.
type request struct {
	account        *account
	key            string // secret
	endpoint       string // as it is billed: "GET /me"
	method, path   string
	body           []byte
	idempotencyKey string
}

// answer is the result of a request.
type answer struct {
	status int // 0: there is no answer
	body   []byte
	sent   bool // the connection was made: the service may have worked on the request
	err    error
}

// sendAPI sends a request to the API of a process once, and records the answer in the bill and the totals.
func (r *run) sendAPI(ctx context.Context, at *serverProcess, q request) answer {
	a := doRequest(ctx, "http://"+at.process.API+adminclient.APIPath, q)
	if a.sent || a.status > 0 {
		r.bill.recordAnswer(at, billLine{q.account.id, q.endpoint}, a.status)
	}
	r.updateTotals(func(t *Totals) { t.add(a) })
	if a.status == 0 && !at.killed.Load() && errors.Is(a.err, context.DeadlineExceeded) && ctx.Err() == nil {
		r.reportViolation("%s of %s has no answer after %v", q.endpoint, q.account.id, requestTimeout)
	}
	return a
}

// sendArea sends a request to the customer area of a process once, as the operator.
func (r *run) sendArea(ctx context.Context, at *serverProcess, method, path string, body any) answer {
	q := request{key: r.operatorToken, method: method, path: path}
	if body != nil {
		q.body, _ = json.Marshal(body) // never fails for the types of package body
	}
	return doRequest(ctx, "http://"+at.process.Area+adminclient.CustomerAreaPath, q)
}

// doRequest sends a request and reads the whole answer. answer.sent is false only where no connection could be made.
func doRequest(ctx context.Context, base string, q request) answer {
	req, err := http.NewRequestWithContext(ctx, q.method, base+q.path, bytes.NewReader(q.body))
	if err != nil {
		return answer{err: err}
	}
	req.Header.Set("Authorization", "Bearer "+q.key)
	if q.idempotencyKey != "" {
		req.Header.Set("Idempotency-Key", q.idempotencyKey)
	}
	resp, err := httpClient.Do(req)
	if err != nil {
		dial := new(net.OpError)
		return answer{sent: !errors.As(err, &dial) || dial.Op != "dial", err: err}
	}
	defer resp.Body.Close()
	a := answer{status: resp.StatusCode, sent: true}
	if a.body, err = io.ReadAll(resp.Body); err != nil {
		return answer{sent: true, err: err} // half an answer counts as none
	}
	return a
}

// readPages reads a list page by page with get, and calls each for every item.
func readPages(path string, get func(path string) answer, each func(json.RawMessage) error) error {
	for cursor := ""; ; {
		a := get(path + cursor)
		if a.status != http.StatusOK {
			return fmt.Errorf("GET %s: %s", path+cursor, a)
		}
		var page struct {
			Results []json.RawMessage `json:"results"`
			Cursor  string            `json:"curseur"`
		}
		if err := json.Unmarshal(a.body, &page); err != nil {
			return fmt.Errorf("GET %s: %w", path+cursor, err)
		}
		for _, one := range page.Results {
			if err := each(one); err != nil {
				return err
			}
		}
		if page.Cursor == "" {
			return nil
		}
		cursor = "&curseur=" + page.Cursor
	}
}

// String is the answer as text for an error.
func (a answer) String() string {
	if a.status == 0 {
		return fmt.Sprint(a.err)
	}
	return fmt.Sprintf("%d %.300s", a.status, a.body)
}
