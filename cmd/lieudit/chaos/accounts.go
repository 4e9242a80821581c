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
	"lieudit/eventstore/waiting"
	"lieudit/schemas/body"
	"lieudit/schemas/plan"
	"lieudit/schemas/token"
)

// account is a customer account that the run opened, with what the run knows of it.
type account struct {
	id           string
	plan         plan.Name
	quota        int64
	exhausted    bool // the run exhausts its quota: 429 is a right answer
	limits       limits
	key          string // secret
	referentials []*referential
	excluded     bool // an instance did not answer it, which is reported: it is not checked any more

	keysLock  sync.Mutex
	extraKeys []*issuedKey // that rotateKey issued
}

// issuedKey is a secret key that a client issued.
type issuedKey struct {
	id, token  string
	revokeSent bool      // its revocation was sent
	revoked    time.Time // when that was acknowledged; zero before
}

// unlimitedQuota is a quota that no run reaches.
const unlimitedQuota = 1_000_000_000

// newAccount returns an account that is still to be opened, with a referential for each of rows, which says how many sites
// the referential may have.
func newAccount(id string, name plan.Name, quota int64, rows ...int) *account {
	p, _ := plan.Lookup(name) // the names are constants of package plan
	a := &account{id: id, plan: name, quota: quota, exhausted: quota < unlimitedQuota, limits: limits{p.Sites, p.Ceiling()}}
	for n, rows := range rows {
		a.referentials = append(a.referentials, newReferential(a, fmt.Sprintf("ref-%d", n+1), rows))
	}
	return a
}

// smallQuota is the quota of the account that exhausts it.
const smallQuota = 400

// openAccounts opens the accounts that exist before the load begins.
func (r *run) openAccounts(ctx context.Context) error {
	starter, _ := plan.Lookup(plan.Starter)
	for _, a := range []*account{
		newAccount("alpha", plan.Business, unlimitedQuota, r.Rows, r.Rows/4),
		newAccount("beta", plan.Business, unlimitedQuota, r.Rows, r.Rows/2),
		newAccount("gamma", plan.Growth, unlimitedQuota, min(r.Rows, 2600)), // more than the plan allows
		newAccount("delta", plan.Starter, unlimitedQuota, starter.Ceiling()+20),
		newAccount("spent", plan.Discovery, smallQuota),
	} {
		if err := r.openAccount(ctx, a, r.dice); err != nil {
			return err
		}
	}
	return nil
}

// openAccount opens an account with a key and its referentials, and retries each request until it succeeds.
func (r *run) openAccount(ctx context.Context, a *account, dice *rand.Rand) error {
	opening := body.OpenAccount{ID: a.id, Name: "Compte " + a.id, Plan: a.plan, Quota: a.quota}
	if _, err := r.postAreaUntil(ctx, dice, "/accounts", opening, http.StatusCreated, http.StatusConflict); err != nil {
		return err
	}
	issued, err := r.postAreaUntil(ctx, dice, backoffice.Path("", "accounts", a.id, "keys"), body.IssueKey{Kind: token.Secret, Label: "main"}, http.StatusCreated)
	if err != nil {
		return err
	}
	var key body.Key
	if err := json.Unmarshal(issued.body, &key); err != nil {
		return err
	}
	a.key = key.Token
	sleep(ctx, waiting.Staleness) // until then an instance may not know the key; from then on each one does
	for _, f := range a.referentials {
		if err := r.sendUntil(ctx, dice, request{
			account: a, key: a.key, endpoint: "POST /locations/referentiels", method: http.MethodPost, path: "/locations/referentiels",
			body: []byte(`{"code":"` + f.code + `"}`),
		}, http.StatusCreated, http.StatusConflict); err != nil {
			return err
		}
	}
	r.recordLock.Lock()
	defer r.recordLock.Unlock()
	r.accounts = append(r.accounts, a)
	return nil
}

// openedAccounts returns the accounts opened so far.
func (r *run) openedAccounts() []*account {
	r.recordLock.Lock()
	defer r.recordLock.Unlock()
	return r.accounts[:len(r.accounts):len(r.accounts)]
}

// retryInterval is how long a client waits before it retries.
const retryInterval = 50 * time.Millisecond

// postAreaUntil posts to the customer area until the answer has one of the wanted statuses. Any other 4xx is an error.
func (r *run) postAreaUntil(ctx context.Context, dice *rand.Rand, path string, body any, wanted ...int) (answer, error) {
	return r.retryUntil(ctx, dice, "POST "+path, func(at *serverProcess) answer { return r.sendArea(ctx, at, http.MethodPost, path, body) }, wanted)
}

// sendUntil sends a request to the API until the answer has one of the wanted statuses. Any other 4xx is an error.
func (r *run) sendUntil(ctx context.Context, dice *rand.Rand, q request, wanted ...int) error {
	_, err := r.retryUntil(ctx, dice, q.endpoint, func(at *serverProcess) answer { return r.sendAPI(ctx, at, q) }, wanted)
	return err
}

// retryUntil calls try, each time on a random running instance, until an answer has one of the wanted statuses.
func (r *run) retryUntil(ctx context.Context, dice *rand.Rand, what string, try func(*serverProcess) answer, wanted []int) (answer, error) {
	var last answer
	for ctx.Err() == nil {
		if at := r.anyRunning(dice); at != nil {
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
		sleep(ctx, retryInterval)
	}
	return last, fmt.Errorf("%s: %w; last: %s", what, context.Cause(ctx), last)
}
