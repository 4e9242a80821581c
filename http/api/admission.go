package api

import (
	"context"
	"net/http"
	"runtime"
	"time"

	"lieudit/http/budget"
	"lieudit/http/kit"
	"lieudit/http/problem"
	"lieudit/queries/worker"
	"lieudit/schemas/refusal"
)

// commandTimeout is how long the work of a write may take. While the log does not answer, a command keeps trying that long to learn
// whether its events were appended. A batch of sites is geocoded in that time too.
const commandTimeout = 60 * time.Second

// serveAuthenticated makes the checks in their order: key, scope, route, method, plan, syntax, quota; then it does the
// work. A large body is read once the plan is checked and the quota is not known to be spent; its share of the budget is
// held until there is an answer. answer reserves memory for the answer until it is sent.
func (h *handler) serveAuthenticated(w http.ResponseWriter, r *http.Request, answer *budget.Answer) (kit.Response, error) {
	a, err := h.authenticator.Authenticate(w.Header(), r)
	if err != nil {
		return kit.Response{}, err
	}
	answer.Account = a.Account
	quota := &reservation{h: h, Authentication: &a}
	v, err := h.serveReserved(w, r, answer, quota)
	if err != nil && quota.counted == 0 && problem.StatusOf(err) < http.StatusInternalServerError {
		h.delayRefusal(r.Context(), a.Account)
	}
	return v, err
}

// The pace of refusals that cost an account nothing, such as those of a spent quota. Beyond a burst they are answered at that pace, each
// at most maxRefusalDelay later than without it. A client that sends the next request once the last one is answered can then not take
// the processor from other accounts with requests that nobody pays for.
const (
	refusalInterval = time.Second / 2000
	refusalBurst    = 1000
	maxRefusalDelay = time.Second
)

// delayRefusal waits until the next refusal of an account may be answered, or its client is gone.
func (h *handler) delayRefusal(ctx context.Context, account string) {
	delay := h.refusals.Delay(account, time.Now(), maxRefusalDelay)
	if delay == 0 {
		return
	}
	wait := time.NewTimer(delay)
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-ctx.Done():
	}
}

// serveReserved serves a request whose key is valid, and counts it by its reservation.
func (h *handler) serveReserved(w http.ResponseWriter, r *http.Request, answer *budget.Answer, quota *reservation) (kit.Response, error) {
	a := quota.Authentication
	route, vars, err := h.table.Match(r, true)
	if err != nil {
		quota.endpoint = r.Method + " " + unknownRoute
		return kit.Response{}, quota.countRefused(r.Context(), err)
	}
	quota.endpoint, quota.isWrite, quota.isFile = route.endpointName(), route.isWrite(), route.isFile()
	if !planIncludes(a.Plan, route.service) {
		return kit.Response{}, quota.countRefused(r.Context(), refusal.PlanInsufficient.With(refusal.Details{Plan: a.Plan}))
	}
	if !route.isFile() {
		if r.Body != nil && r.Body != http.NoBody {
			ctx, decoding := h.newTask(r.Context(), a.Account) // for a large body
			r = r.WithContext(ctx)
			defer decoding.Release()
		}
		releaseBody := budget.LimitBody(h.Bodies, r, budget.Admission{Account: a.Account, Limit: route.bodyLimit, Allow: func() error {
			return quota.check(r.Context()) // so a client that can get no answer does not take memory for 64 MiB
		}})
		defer releaseBody()
	}
	do, decodeErr := route.endpoint(r)
	worker.Release(r.Context()) // the check of the quota may wait for the log
	if isAnsweredBeforeQuota(problem.StatusOf(decodeErr)) {
		return kit.Response{}, decodeErr
	}
	return h.runCounted(r.Context(), quota, func(ctx context.Context) (v kit.Response, err error) {
		if err = decodeErr; err == nil {
			v, err = do(ctx, call{Principal: caller{a, h.Now()}, Vars: vars, Answer: answer, Quota: quota})
		}
		if err != nil {
			return kit.Response{}, kit.FitError(answer, err)
		}
		return v.Fit(answer, route.isWrite())
	})
}

// isAnsweredBeforeQuota reports whether a request that could not be decoded, with an answer of this status, is answered at
// once and never counted. Then it is not a request of the API (400), or its large body was not read: the key ended, the quota
// is spent, the service lacks memory. All else that is wrong with a request is answered after the quota, and counts.
func isAnsweredBeforeQuota(status int) bool {
	return status == http.StatusBadRequest || status == http.StatusUnauthorized || status == http.StatusTooManyRequests ||
		status >= http.StatusInternalServerError
}

// unknownRoute stands for every path that is not a route.
const unknownRoute = "*"

// runCounted admits a request, does its work, and settles what it counts as. Work that panics is settled as the 500 that it
// becomes, and the panic continues. An error of settling is answered in place of the result, which is discarded.
func (h *handler) runCounted(ctx context.Context, quota *reservation, do func(context.Context) (kit.Response, error)) (v kit.Response, err error) {
	if err := quota.admit(ctx); err != nil {
		return kit.Response{}, err
	}
	status := http.StatusInternalServerError
	defer func() {
		if refused := quota.settle(ctx, status); refused != nil {
			if v.Discard != nil {
				v.Discard()
			}
			v, err = kit.Response{}, refused
		}
	}()
	v, err = h.run(ctx, quota, do)
	status = problem.StatusOf(err)
	return v, err
}

// run does the work. A write was counted before, durably: it continues though its client goes away, so that what it
// did can be settled, and it ends within commandTimeout whatever the log does.
func (h *handler) run(ctx context.Context, quota *reservation, do func(context.Context) (kit.Response, error)) (kit.Response, error) {
	switch {
	case quota.isFile:
		return do(ctx)
	case !quota.isWrite:
		return h.runShared(ctx, quota.Account, do)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commandTimeout)
	defer cancel()
	ctx, task := h.newTask(ctx, quota.Account) // for geocoding
	defer task.Release()
	return do(ctx)
}

// NewWorkers returns the budget of workers for costly queries and files: how many run at once, and half as many for one account. If there
// are several processors, one stays free for all other requests.
func NewWorkers() *budget.Budget {
	workers := int64(max(1, runtime.GOMAXPROCS(0)-1))
	return budget.New(workers, (workers+1)/2)
}

// searchesPerWorker is how many searches that hold memory may be under way for each worker. One of a country holds some megabytes.
const searchesPerWorker = 32

// NewSearches returns the budget of searches that hold memory until they end: how many may be under way, and half as many for one account.
func NewSearches() *budget.Budget {
	searches := int64(searchesPerWorker * max(1, runtime.GOMAXPROCS(0)-1))
	return budget.New(searches, searches/2)
}

// newTask is worker.WithTask on the pools that all accounts share.
func (e *Env) newTask(ctx context.Context, account string) (context.Context, *worker.Task) {
	return worker.WithTask(ctx, worker.Pools{Workers: e.Workers, Searches: e.Searches}, account)
}

// runShared does the work of a request that only reads. If the work is costly, it gets a worker of those that all accounts share, and
// keeps it until the answer is encoded.
func (h *handler) runShared(ctx context.Context, account string, do func(context.Context) (kit.Response, error)) (kit.Response, error) {
	ctx, task := h.newTask(ctx, account)
	defer task.Release()
	response, err := do(ctx)
	if err == nil && task.HasWorker() {
		err = response.Encode()
	}
	return response, err
}
