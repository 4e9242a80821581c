package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"lieudit/cmd/bench/harness"
	"lieudit/cmd/bench/model"
	"lieudit/cmd/lieudit/adminclient"
	"lieudit/eventstore"
	"lieudit/eventstore/clock"
	"lieudit/schemas/body"
	"lieudit/schemas/plan"
	"lieudit/schemas/token"
)

// requestTimeout is how long a request may take. The service answers sooner: it spends less time on finding out whether a write was appended.
// So a request that reaches this timeout, while its process runs, is a violation.
const requestTimeout = 100 * time.Second

// newHTTPClient returns a client that sends each request over a new connection. So the transport never retries by itself, and a broken
// connection concerns exactly one request.
func newHTTPClient() *http.Client {
	return &http.Client{Timeout: requestTimeout, Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true}}
}

// request is a request to the API, or to another server of an instance. Only requests to the API have an account and an
// endpoint.
type request struct {
	account        *account
	label, key     string // of the key, and its secret
	endpoint       string // as it is billed: "GET /me"
	method, path   string
	body           []byte
	idempotencyKey string

	command   model.PlacesCommand  // the command on the account's sites; nil: none
	onAccount model.AccountCommand // the command on the account itself; nil: none
}

// answer is the result of a request.
type answer struct {
	status int // 0: there is no answer
	body   []byte
	sent   bool // the connection was made: the service may have worked on the request
	err    error
}

// forModel returns the answer in the model's form.
func (a answer) forModel() model.Answer {
	return model.Answer{Status: a.status, Body: a.body, IsSent: a.sent}
}

// sendAPI sends a request to the API of a process once, has the model check the answer, and records it in the totals.
func (r *run) sendAPI(ctx context.Context, at *serverProcess, q request) answer {
	call := r.model.Begin(model.Operation{
		Text: q.method + " " + q.path, Instance: at.number, Account: q.account.id, Endpoint: q.endpoint, Key: q.label, Weight: 1, OnPlaces: q.command,
	}, time.Now())
	a := r.doRequest(ctx, "http://"+at.process.API+adminclient.APIPath, q)
	r.model.End(call, a.forModel(), time.Now())
	r.updateTotals(func(t *Totals) { t.addAnswer(a) })
	if a.status == 0 && !at.killed.Load() && errors.Is(a.err, context.DeadlineExceeded) && ctx.Err() == nil {
		r.reportViolation("%s of %s has no answer after %v", q.endpoint, q.account.id, requestTimeout)
	}
	return a
}

// sendArea sends a request to the customer area of a process once, as the operator, and has the model check the answer.
func (r *run) sendArea(ctx context.Context, at *serverProcess, q request, body any) answer {
	q.key = r.operatorToken
	if body != nil {
		q.body, _ = json.Marshal(body) // never fails for the types of package body
	}
	op := model.Operation{Text: q.method + " " + q.path, Instance: at.number, Token: model.Operator, OnAccount: q.onAccount}
	if q.account != nil {
		op.Account = q.account.id
	}
	call := r.model.Begin(op, time.Now())
	a := r.doRequest(ctx, "http://"+at.process.Area+adminclient.CustomerAreaPath, q)
	r.model.End(call, a.forModel(), time.Now())
	return a
}

// doRequest sends a request once and reads the whole answer. answer.sent is false only if no connection could be made, so that the request
// cannot have reached the service.
func (r *run) doRequest(ctx context.Context, base string, q request) answer {
	req, err := http.NewRequestWithContext(ctx, q.method, base+q.path, bytes.NewReader(q.body))
	if err != nil {
		return answer{err: err}
	}
	req.Header.Set("Authorization", "Bearer "+q.key)
	if q.idempotencyKey != "" {
		req.Header.Set("Idempotency-Key", q.idempotencyKey)
	}
	resp, err := r.httpClient.Do(req)
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

// readPages reads a list page by page with get, and calls each for every item in order. path must have a query, because the
// cursor is appended to it. The first error of each, or an answer other than 200, ends it.
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

// String returns the answer as text for an error, with at most 300 bytes of its body.
func (a answer) String() string {
	if a.status == 0 {
		return fmt.Sprint(a.err)
	}
	return fmt.Sprintf("%d %.300s", a.status, a.body)
}

// account is a customer account that the run opened. Each of its referentials is written by one client. excluded changes only
// in checks, when no client sends a request.
type account struct {
	id           string
	plan         plan.Name
	quota        int64
	exhausted    bool   // the run exhausts its quota: 429 is allowed
	label, key   string // of the key that clients use, and its secret
	referentials []*referential
	excluded     bool // an instance did not answer it, which is reported: no longer checked

	keysLock sync.Mutex // held while a key is issued or revoked
	keys     int        // requested, by openAccount or rotateKey
}

// unlimitedQuota is a quota that no run reaches.
const unlimitedQuota = 1_000_000_000

// newAccount returns an account that is still to be opened, with a referential for each of rows, the number of sites that it may have.
func newAccount(id string, name plan.Name, quota int64, rows ...int) *account {
	a := &account{id: id, plan: name, quota: quota, exhausted: quota < unlimitedQuota}
	for n, rows := range rows {
		a.referentials = append(a.referentials, &referential{account: a, code: fmt.Sprintf("ref-%d", n+1), rows: rows})
	}
	return a
}

// smallQuota is the quota of the account that is to exhaust it.
const smallQuota = 400

// openAccounts opens the accounts that exist before the load begins. alpha and beta stay below their limit of sites, gamma and delta can exceed
// it with one referential, and spent has no sites and exhausts its quota.
func (r *run) openAccounts(ctx context.Context) error {
	starter, _ := plan.Lookup(plan.Starter)
	for _, a := range []*account{
		newAccount("alpha", plan.Business, unlimitedQuota, r.Rows, r.Rows/4),
		newAccount("beta", plan.Business, unlimitedQuota, r.Rows, r.Rows/2),
		newAccount("gamma", plan.Growth, unlimitedQuota, min(r.Rows, 2600)), // more than the plan allows
		newAccount("delta", plan.Starter, unlimitedQuota, starter.SiteCeiling()+20),
		newAccount("spent", plan.Discovery, smallQuota),
	} {
		if err := r.openAccount(ctx, a, r.rng); err != nil {
			return err
		}
	}
	return nil
}

// openAccount opens an account with a key and its referentials, and retries each request until it succeeds. 409 is success too: an earlier try
// took effect but was not answered. Only then is the account listed in r.accounts, where clients find it.
func (r *run) openAccount(ctx context.Context, a *account, rng *rand.Rand) error {
	command := model.OpenAccount{ID: a.id, Name: "Compte " + a.id, Plan: string(a.plan), Quota: a.quota, Anchor: model.Day(time.Now())}
	opening := map[string]any{"id": a.id, "nom": command.Name, "plan": a.plan, "quota": a.quota, "debut_periode": command.Anchor}
	if _, err := r.retryUntil(ctx, rng, "POST /accounts", func(at *serverProcess) answer {
		return r.sendArea(ctx, at, request{account: a, method: http.MethodPost, path: "/accounts", onAccount: command}, opening)
	}, []int{http.StatusCreated, http.StatusConflict}); err != nil {
		return err
	}
	issued, err := r.retryUntil(ctx, rng, "issue of a key", func(at *serverProcess) answer { return r.issueKey(ctx, at, a) }, []int{http.StatusCreated})
	if err != nil {
		return err
	}
	var key body.Key
	if err := json.Unmarshal(issued.body, &key); err != nil {
		return err
	}
	a.label, a.key = key.Label, key.Token
	clock.Sleep(ctx, eventstore.MaxStaleness) // until then an instance may not know the key; after that every instance does
	for _, f := range a.referentials {
		q := request{
			account: a, label: a.label, key: a.key, endpoint: "POST /locations/referentiels", method: http.MethodPost, path: "/locations/referentiels",
			body: []byte(`{"code":"` + f.code + `","nom":"` + f.code + `"}`), command: model.OpenReferential{Code: f.code, Name: f.code},
		}
		if _, err := r.retryUntil(ctx, rng, q.endpoint, func(at *serverProcess) answer { return r.sendAPI(ctx, at, q) }, []int{http.StatusCreated, http.StatusConflict}); err != nil {
			return err
		}
	}
	r.recordLock.Lock()
	defer r.recordLock.Unlock()
	r.accounts = append(r.accounts, a)
	return nil
}

// issueKey issues a key under a new label. The model learns its secret from the answer; without an answer nobody does.
func (r *run) issueKey(ctx context.Context, at *serverProcess, a *account) answer {
	a.keys++
	label := fmt.Sprintf("key-%d", a.keys)
	return r.sendArea(ctx, at, request{
		account: a, method: http.MethodPost, path: adminclient.JoinPath("", "accounts", a.id, "keys"), onAccount: model.IssueKey{Kind: "secret", Label: label},
	}, body.IssueKey{Kind: token.Secret, Label: label})
}

// openedAccounts returns the accounts opened so far. The slice does not change when another one is opened.
func (r *run) openedAccounts() []*account {
	r.recordLock.Lock()
	defer r.recordLock.Unlock()
	return r.accounts[:len(r.accounts):len(r.accounts)]
}

// retryInterval is how long a client waits before it retries.
const retryInterval = 50 * time.Millisecond

// retryUntil calls try, each time on a random running instance, until an answer has one of the wanted statuses. It returns that answer. An
// unwanted 4xx ends it at once, because the same request would get it again.
func (r *run) retryUntil(ctx context.Context, rng *rand.Rand, what string, try func(*serverProcess) answer, wanted []int) (last answer, err error) {
	err = harness.Retry(ctx, r.TimeLimit, retryInterval, func() error {
		at := r.anyRunning(rng)
		if at == nil {
			return errors.New("no instance runs")
		}
		last = try(at)
		switch {
		case slices.Contains(wanted, last.status):
			return nil
		case last.status >= 400 && last.status < 500:
			return backoff.Permanent(fmt.Errorf("%s: %s", what, last))
		}
		return fmt.Errorf("%s: %s", what, last)
	})
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%s: %w; last: %s", what, err, last)
	}
	return last, err
}
