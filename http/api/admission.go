package api

import (
	"context"
	"net/http"
	"time"

	"lieudit/commands/usage"
	"lieudit/eventstore/waitlimit"
	"lieudit/http/auth"
	"lieudit/http/bodylimit"
	"lieudit/http/kit"
	"lieudit/http/problem"
	"lieudit/schemas/access"
	"lieudit/schemas/refusal"
)

// commandTimeout is how long the work of a write may take. While the log does not answer, a command tries for so long to learn
// whether its events were appended. A batch of sites is geocoded in that time too.
const commandTimeout = 60 * time.Second

// serveAuthenticated makes the checks in their order: key, scope, route, method, plan, syntax, quota; then it does the
// work. A large body is read once the plan is checked and the quota is not known to be spent; its share of the budget is
// held until there is an answer.
func (h *handler) serveAuthenticated(w http.ResponseWriter, r *http.Request) (kit.Response, error) {
	authentication, err := h.authenticator.Authenticate(w.Header(), r)
	if err != nil {
		return kit.Response{}, err
	}
	g, budget := authentication.Grant, h.newWaitBudget(authentication)
	route, vars, err := h.table.Match(r, true)
	if err != nil {
		return kit.Response{}, h.countRefusal(r.Context(), budget, r.Method+" "+unknownRoute, err)
	}
	if !planIncludes(g.Plan, route.service) {
		return kit.Response{}, h.countRefusal(r.Context(), budget, route.endpointName(), refusal.PlanInsufficient.With(refusal.Details{Plan: g.Plan}))
	}
	if !route.isFile() {
		defer h.Bodies.Limit(r, bodylimit.Admission{Account: g.Account, Limit: route.bodyLimit, Allow: func() error {
			return h.checkLargeBody(r.Context(), budget, route.endpointName())
		}})()
	}
	do, decodeErr := route.endpoint(r)
	if isAnsweredBeforeQuota(problem.StatusOf(decodeErr)) {
		return kit.Response{}, decodeErr
	}
	return h.runMetered(r.Context(), route, func(ctx context.Context) (kit.Response, error) {
		if decodeErr != nil {
			return kit.Response{}, decodeErr
		}
		return do(ctx, call{Principal: caller{g, h.Now(), budget}, Vars: vars})
	}, budget)
}

// isAnsweredBeforeQuota reports whether a request that could not be decoded, with an answer of this status, is answered at
// once and never counted. Then it is no request of the API (400), or its large body was not read: the key ended, the quota
// is spent, the service lacks memory. All else that is wrong with a request is answered after the quota, and counts.
func isAnsweredBeforeQuota(status int) bool {
	return status == http.StatusBadRequest || status == http.StatusUnauthorized || status == http.StatusTooManyRequests ||
		status >= http.StatusInternalServerError
}

// unknownRoute stands for every path that is no route.
const unknownRoute = "*"

// countRefusal counts a request that is refused for cause, and returns cause. Where the request cannot be counted it returns the
// error of counting.
func (h *handler) countRefusal(ctx context.Context, b *waitBudget, endpoint string, cause error) error {
	err := b.runWithin(ctx, func(ctx context.Context) error { return h.meter.CountRefused(ctx, b.Grant, endpoint) })
	if err != nil {
		return err
	}
	return cause
}

// checkLargeBody is the refusal of a large body before it is read: the account is known to have used its quota, or the key is no
// longer valid. nil: the body may be read. So a client that can get no answer does not take memory for 64 MiB.
func (h *handler) checkLargeBody(ctx context.Context, b *waitBudget, endpoint string) error {
	refused, err := b.runAndRevalidate(ctx, func(ctx context.Context) error { return h.meter.CheckQuota(ctx, b.Grant, endpoint) })
	if refused != nil {
		return refused
	}
	return err
}

// runMetered does the work between the two halves of metering it: Admit before, the SettleFunc after. Work that panics is
// settled as the 500 that it becomes, and the panic goes on. An error of settling is answered in place of the result, which is
// discarded. A body that shows the usage is completed with what was settled.
func (h *handler) runMetered(ctx context.Context, rt route, do func(context.Context) (kit.Response, error), b *waitBudget) (v kit.Response, err error) {
	settle, err := h.admitMetered(ctx, rt, b)
	if err != nil {
		return kit.Response{}, err
	}
	status := http.StatusInternalServerError
	defer func() {
		spent, refused := h.settleUsage(ctx, rt, b, settle, status)
		if refused != nil {
			if v.Discard != nil {
				v.Discard()
			}
			v, err = kit.Response{}, refused
		}
		if render, ok := v.Body.(bodyWithUsage); ok {
			v.Body = render(spent)
		}
	}()
	v, err = h.runOperation(ctx, rt, do)
	status = problem.StatusOf(err)
	return v, err
}

// runOperation does the work. A write was counted before, durably: it goes on though its client goes away, so that what it
// did can be settled, and it ends within commandTimeout whatever the log does.
func (h *handler) runOperation(ctx context.Context, rt route, do func(context.Context) (kit.Response, error)) (kit.Response, error) {
	if !rt.isWrite() {
		return do(ctx)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commandTimeout)
	defer cancel()
	return do(ctx)
}

// admitMetered admits a request to the work, and returns the SettleFunc to call after it. Admitting may wait for the log, so the
// key is checked again. If it turns out to be no longer valid, a write that was counted already is refunded.
func (h *handler) admitMetered(ctx context.Context, rt route, b *waitBudget) (settle SettleFunc, err error) {
	refused, err := b.runAndRevalidate(ctx, func(ctx context.Context) (err error) {
		settle, err = h.meter.Admit(ctx, b.Grant, rt.endpointName(), rt.isWrite())
		return err
	})
	if refused == nil {
		return settle, err
	}
	if err == nil && rt.isWrite() {
		b.undo(ctx, func(ctx context.Context) { settle(ctx, problem.StatusOf(refused)) })
	}
	return nil, refused
}

// settleUsage ends the metering of a request, with the status of its answer. A file that is answered is not counted here: its rows
// were. The key of a request that only read is checked once
// more: if it is no longer valid, the request is refused and what was counted is refunded. A write has been done by now, so its
// answer is sent whatever became of the key.
func (h *handler) settleUsage(ctx context.Context, rt route, b *waitBudget, settle SettleFunc, status int) (spent usage.QuotaUsage, err error) {
	if rt.isFile() && status == http.StatusOK {
		return usage.QuotaUsage{}, nil
	}
	if rt.isWrite() {
		return settle(ctx, status)
	}
	refused, err := b.runAndRevalidate(ctx, func(ctx context.Context) (err error) {
		spent, err = settle(ctx, status)
		return err
	})
	if refused == nil {
		return spent, err
	}
	b.undo(ctx, func(ctx context.Context) {
		if refundErr := spent.Refund(ctx); refundErr != nil {
			h.Log.Warn("a refund is not durable yet", "account", b.Account, "endpoint", rt.endpointName(), "reason", refundErr)
		}
	})
	return usage.QuotaUsage{}, refused
}

// waitBudget is how long one request may still wait for the logs, over all that it waits for: waitlimit.MaxWait in all. It also
// holds what the request was authenticated with, which may be no older than waitlimit.MaxStaleness when the answer is sent, so
// that a revocation takes effect everywhere within that time. It belongs to one request and is not safe for concurrent use.
type waitBudget struct {
	access.Grant
	authenticator  *auth.Authenticator
	now            func() time.Time
	authentication auth.Authentication
	remaining      time.Duration
}

func (h *handler) newWaitBudget(authentication auth.Authentication) *waitBudget {
	return &waitBudget{authentication.Grant, h.authenticator, h.Now, authentication, waitlimit.MaxWait - authentication.Waited}
}

// runWithin does something that may wait, within the time that is left, and takes the time that it took from the budget.
// waitlimit.UncountedWait is always left, and a wait no longer than that does not count. As long as nothing was taken it sets no
// deadline: what waits for a log keeps to waitlimit.MaxWait itself. Where keys cannot go stale nothing follows a log, and there
// is no limit.
func (b *waitBudget) runWithin(ctx context.Context, do func(context.Context) error) error {
	if !b.authenticator.CanGoStale() {
		return do(ctx)
	}
	if b.remaining < waitlimit.MaxWait {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, max(b.remaining, waitlimit.UncountedWait))
		defer cancel()
	}
	started := b.now()
	err := do(ctx)
	if waited := b.now().Sub(started); waited > waitlimit.UncountedWait {
		b.remaining -= waited
	}
	return err
}

// runAndRevalidate is runWithin, and then checks whether the key is still valid. refused is set where it is not, whatever
// err is.
func (b *waitBudget) runAndRevalidate(ctx context.Context, do func(context.Context) error) (refused, err error) {
	err = b.runWithin(ctx, do)
	if !b.authenticator.CanGoStale() {
		return nil, err
	}
	before := b.authentication.Waited
	refused = b.authenticator.Revalidate(ctx, &b.authentication, b.now(), b.remaining)
	b.remaining -= b.authentication.Waited - before
	return refused, err
}

// undo takes something back though the client may be gone. It waits for that no longer than the request may wait; what is
// not durable by then becomes so later.
func (b *waitBudget) undo(ctx context.Context, do func(context.Context)) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), max(b.remaining, waitlimit.UncountedWait))
	defer cancel()
	do(ctx)
}
