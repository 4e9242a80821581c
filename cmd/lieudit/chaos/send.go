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

	"lieudit/cmd/lieudit/backoffice"
)

// maxAnswer is how long a request may take: longer than a command tries to learn what became of it.
const maxAnswer = 100 * time.Second

// sender sends requests, each over a connection of its own: so none is sent twice by the transport, and what broke is
// known to have been one request.
var sender = &http.Client{Timeout: maxAnswer, Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true}}

// request is one to the API.
type request struct {
	account        *account
	key            string // secret
	endpoint       string // as it is billed: "GET /me"
	method, path   string
	body           []byte
	idempotencyKey string
}

// answer is what came of a request.
type answer struct {
	status int // 0: none came
	body   []byte
	sent   bool // it may have been worked on
	err    error
}

// send asks the API of a life, and notes the answer for the bill.
func (r *run) send(ctx context.Context, at *life, q request) answer {
	a := exchange(ctx, "http://"+at.process.API+backoffice.APIPath, q)
	if a.sent || a.status > 0 {
		r.bill.answer(at, line{q.account.id, q.endpoint}, a.status)
	}
	r.count(func(t *Totals) { t.add(a) })
	if a.status == 0 && !at.killed.Load() && errors.Is(a.err, context.DeadlineExceeded) && ctx.Err() == nil {
		r.violate("%s of %s has no answer after %v", q.endpoint, q.account.id, maxAnswer)
	}
	return a
}

// sendArea asks the customer area of a life, as the operator.
func (r *run) sendArea(ctx context.Context, at *life, method, path string, body any) answer {
	q := request{key: r.operator, method: method, path: path}
	if body != nil {
		q.body, _ = json.Marshal(body) // bodies of our own
	}
	return exchange(ctx, "http://"+at.process.Area+backoffice.BasePath, q)
}

// exchange sends a request and reads the whole answer. A connection that could not be made sent nothing.
func exchange(ctx context.Context, base string, q request) answer {
	req, err := http.NewRequestWithContext(ctx, q.method, base+q.path, bytes.NewReader(q.body))
	if err != nil {
		return answer{err: err}
	}
	req.Header.Set("Authorization", "Bearer "+q.key)
	if q.idempotencyKey != "" {
		req.Header.Set("Idempotency-Key", q.idempotencyKey)
	}
	resp, err := sender.Do(req)
	if err != nil {
		dial := new(net.OpError)
		return answer{sent: !errors.As(err, &dial) || dial.Op != "dial", err: err}
	}
	defer resp.Body.Close()
	a := answer{status: resp.StatusCode, sent: true}
	if a.body, err = io.ReadAll(resp.Body); err != nil {
		return answer{sent: true, err: err} // half an answer is none
	}
	return a
}

// readPages reads a list, page after page, with ask; every item of its results is told.
func readPages(path string, ask func(path string) answer, tell func(json.RawMessage) error) error {
	for cursor := ""; ; {
		a := ask(path + cursor)
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
			if err := tell(one); err != nil {
				return err
			}
		}
		if page.Cursor == "" {
			return nil
		}
		cursor = "&curseur=" + page.Cursor
	}
}

// String is an answer in an error's words.
func (a answer) String() string {
	if a.status == 0 {
		return fmt.Sprint(a.err)
	}
	return fmt.Sprintf("%d %.300s", a.status, a.body)
}
