package api

import (
	"context"
	"net/http"
	"time"

	"lieudit/commands/usage"
	"lieudit/http/auth"
	"lieudit/http/bodylimit"
	"lieudit/http/kit"
	"lieudit/http/problem"
	"lieudit/schemas/refusal"
)

// commandTimeout is how long the work of a write may take. While the log does not answer, a command tries for so long to learn
// whether its events were appended. A batch of sites is geocoded in that time too.
const commandTimeout = 60 * time.Second

// serveAuthenticated makes the checks in their order: key, scope, route, method, plan, syntax, quota; then it does the
// work. A large body is read once the plan is checked and the quota is not known to be spent; its share of the budget is
// held until there is an answer.
func (h *handler) serveAuthenticated(w http.ResponseWriter, r *http.Request) (kit.Response, error) {
	a, err := h.authenticator.Authenticate(w.Header(), r)
	if err != nil {
		return kit.Response{}, err
	}
	route, vars, err := h.table.Match(r, true)
	if err != nil {
		return kit.Response{}, h.countRefusal(r.Context(), &a, r.Method+" "+unknownRoute, err)
	}
	if !planIncludes(a.Plan, route.service) {
		return kit.Response{}, h.countRefusal(r.Context(), &a, route.endpointName(), refusal.PlanInsufficient.With(refusal.Details{Plan: a.Plan}))
	}
	if !route.isFile() {
		defer h.Bodies.Limit(r, bodylimit.Admission{Account: a.Account, Limit: route.bodyLimit, Allow: func() error {
			return h.checkLargeBody(r.Context(), &a, route.endpointName())
		}})()
	}
	do, decodeErr := route.endpoint(r)
	if isAnsweredBeforeQuota(problem.StatusOf(decodeErr)) {
		return kit.Response{}, decodeErr
	}
	return h.runMetered(r.Context(), &a, route, func(ctx context.Context) (kit.Response, error) {
		if decodeErr != nil {
			return kit.Response{}, decodeErr
		}
		return do(ctx, call{Principal: caller{a.Grant, h.Now(), &a}, Vars: vars})
	})
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
func (h *handler) countRefusal(ctx context.Context, a *auth.Authentication, endpoint string, cause error) error {
	if err := h.meter.CountRefused(ctx, a, endpoint); err != nil {
		return err
	}
	return cause
}

// checkLargeBody is the refusal of a large body before it is read: the account is known to have used its quota, or the key is no
// longer valid. nil: the body may be read. So a client that can get no answer does not take memory for 64 MiB.
func (h *handler) checkLargeBody(ctx context.Context, a *auth.Authentication, endpoint string) error {
	err := h.meter.CheckQuota(ctx, a, endpoint)
	if refused := h.authenticator.Revalidate(ctx, a); refused != nil {
		return refused
	}
	return err
}

// runMetered does the work between the two halves of metering it: Admit before, the SettleFunc after. Work that panics is
// settled as the 500 that it becomes, and the panic goes on. An error of settling is answered in place of the result, which is
// discarded. A body that shows the usage is completed with what was settled.
func (h *handler) runMetered(ctx context.Context, a *auth.Authentication, rt route, do func(context.Context) (kit.Response, error)) (v kit.Response, err error) {
	settle, err := h.admitMetered(ctx, a, rt)
	if err != nil {
		return kit.Response{}, err
	}
	status := http.StatusInternalServerError
	defer func() {
		spent, refused := h.settleUsage(ctx, a, rt, settle, status)
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
func (h *handler) admitMetered(ctx context.Context, a *auth.Authentication, rt route) (SettleFunc, error) {
	settle, err := h.meter.Admit(ctx, a, rt.endpointName(), rt.isWrite())
	refused := h.authenticator.Revalidate(ctx, a)
	if refused == nil {
		return settle, err
	}
	if err == nil && rt.isWrite() {
		ctx, cancel := a.Wait.Detach(ctx)
		defer cancel()
		settle(ctx, problem.StatusOf(refused))
	}
	return nil, refused
}

// settleUsage ends the metering of a request, with the status of its answer. A file that is answered is not counted here: its rows
// were. The key of a request that only read is checked once
// more: if it is no longer valid, the request is refused and what was counted is refunded. A write has been done by now, so its
// answer is sent whatever became of the key.
func (h *handler) settleUsage(ctx context.Context, a *auth.Authentication, rt route, settle SettleFunc, status int) (usage.QuotaUsage, error) {
	if rt.isFile() && status == http.StatusOK {
		return usage.QuotaUsage{}, nil
	}
	spent, err := settle(ctx, status)
	if rt.isWrite() {
		return spent, err
	}
	refused := h.authenticator.Revalidate(ctx, a)
	if refused == nil {
		return spent, err
	}
	ctx, cancel := a.Wait.Detach(ctx)
	defer cancel()
	if err := spent.Refund(ctx); err != nil {
		h.Log.Warn("a refund is not durable yet", "account", a.Account, "endpoint", rt.endpointName(), "reason", err)
	}
	return usage.QuotaUsage{}, refused
}
