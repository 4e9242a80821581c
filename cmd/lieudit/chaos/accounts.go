package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"lieudit/cmd/lieudit/backoffice"
	"lieudit/schemas/body"
	"lieudit/schemas/plan"
	"lieudit/schemas/token"
)

// account is a customer of the run.
type account struct {
	id           string
	plan         plan.Name
	quota        int64
	spent        bool // its quota is small, and is used up
	limits       limits
	key          string // secret
	referentials []*referential
	broken       bool // it is not answered any more: what follows from that is no news

	mu   sync.Mutex
	keys []*key // besides
}

// key is a secret key that a client issued.
type key struct {
	id, token string
	asked     bool      // its revocation was sent
	revoked   time.Time // when that was acknowledged; zero before
}

// plenty is a quota that is not reached.
const plenty = 1_000_000_000

// accountOf is an account that is still to be opened.
func accountOf(id string, name plan.Name, quota int64, rows ...int) *account {
	p, _ := plan.Lookup(name) // a plan of the table
	a := &account{id: id, plan: name, quota: quota, spent: quota < plenty, limits: limits{p.Sites, p.Ceiling()}}
	for n, rows := range rows {
		a.referentials = append(a.referentials, newReferential(a, fmt.Sprintf("ref-%d", n+1), rows))
	}
	return a
}

// spentQuota is the quota of the account that uses it up.
const spentQuota = 400

// openAccounts opens the accounts that the load begins with.
func (r *run) openAccounts(ctx context.Context) error {
	starter, _ := plan.Lookup(plan.Starter)
	for _, a := range []*account{
		accountOf("alpha", plan.Business, plenty, r.Rows, r.Rows/4),
		accountOf("beta", plan.Business, plenty, r.Rows, r.Rows/2),
		accountOf("gamma", plan.Growth, plenty, min(r.Rows, 2600)), // above what the plan may have
		accountOf("delta", plan.Starter, plenty, starter.Ceiling()+20),
		accountOf("spent", plan.Discovery, spentQuota),
	} {
		if err := r.open(ctx, a, r.dice); err != nil {
			return err
		}
	}
	return nil
}

// open opens an account with its key and its referentials, however often that has to be tried.
func (r *run) open(ctx context.Context, a *account, dice *rand.Rand) error {
	opening := body.OpenAccount{ID: a.id, Name: "Compte " + a.id, Plan: a.plan, Quota: a.quota}
	if _, err := r.insistArea(ctx, dice, "/accounts", opening, http.StatusCreated, http.StatusConflict); err != nil {
		return err
	}
	issued, err := r.insistArea(ctx, dice, backoffice.Path("", "accounts", a.id, "keys"), body.IssueKey{Kind: token.Secret, Label: "main"}, http.StatusCreated)
	if err != nil {
		return err
	}
	var key body.Key
	if err := json.Unmarshal(issued.body, &key); err != nil {
		return err
	}
	a.key = key.Token
	for _, f := range a.referentials {
		if err := r.insist(ctx, dice, request{
			account: a, key: a.key, endpoint: "POST /locations/referentiels", method: http.MethodPost, path: "/locations/referentiels",
			body: []byte(`{"code":"` + f.code + `"}`),
		}, http.StatusCreated, http.StatusConflict); err != nil {
			return err
		}
	}
	r.noted.Lock()
	defer r.noted.Unlock()
	r.accounts = append(r.accounts, a)
	return nil
}

// opened are the accounts there are by now.
func (r *run) opened() []*account {
	r.noted.Lock()
	defer r.noted.Unlock()
	return r.accounts[:len(r.accounts):len(r.accounts)]
}

// retry is how long a client waits before it tries again.
const retry = 50 * time.Millisecond

// insistArea posts to the customer area until it is answered in one of the ways that are wanted. What else is answered
// and is no 5xx is an error.
func (r *run) insistArea(ctx context.Context, dice *rand.Rand, path string, body any, wanted ...int) (answer, error) {
	return r.until(ctx, dice, "POST "+path, func(at *life) answer { return r.sendArea(ctx, at, http.MethodPost, path, body) }, wanted)
}

// insist sends a request to the API until it is answered in one of the ways that are wanted.
func (r *run) insist(ctx context.Context, dice *rand.Rand, q request, wanted ...int) error {
	fresh := time.Now().Add(5 * time.Second) // a key reaches every instance by then
	_, err := r.until(ctx, dice, q.endpoint, func(at *life) answer {
		a := r.send(ctx, at, q)
		if a.status == http.StatusUnauthorized && time.Now().Before(fresh) {
			return answer{err: fmt.Errorf("key not known yet")}
		}
		return a
	}, wanted)
	return err
}

// until tries at one instance after the other.
func (r *run) until(ctx context.Context, dice *rand.Rand, what string, try func(*life) answer, wanted []int) (answer, error) {
	var last answer
	for ctx.Err() == nil {
		if at := r.any(dice); at != nil {
			last = try(at)
		}
		for _, status := range wanted {
			if last.status == status {
				return last, nil
			}
		}
		if last.status >= 400 && last.status < 500 {
			return last, fmt.Errorf("%s: %s", what, last)
		}
		sleep(ctx, retry)
	}
	return last, fmt.Errorf("%s: %w; last: %s", what, context.Cause(ctx), last)
}
