package api

import (
	"context"
	"net/http"
	"time"

	"lieudit/commands/usage"
	"lieudit/http/auth"
	"lieudit/http/budget"
	"lieudit/http/kit"
	"lieudit/http/problem"
	"lieudit/queries/worker"
	"lieudit/schemas/refusal"
)

// commandTimeout is how long the work of a write may take. While the log does not answer, a command tries for so long to learn
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
	route, vars, err := h.table.Match(r, true)
	if err != nil {
		return kit.Response{}, h.countRefusal(r.Context(), &a, r.Method+" "+unknownRoute, err)
	}
	if !planIncludes(a.Plan, route.service) {
		return kit.Response{}, h.countRefusal(r.Context(), &a, route.endpointName(), refusal.PlanInsufficient.With(refusal.Details{Plan: a.Plan}))
	}
	if !route.isFile() {
		if r.Body != nil && r.Body != http.NoBody {
			ctx, decoding := h.newTask(r.Context(), a.Account) // for a large body
			r = r.WithContext(ctx)
			defer decoding.Release()
		}
		defer budget.LimitBody(h.Bodies, r, budget.Admission{Account: a.Account, Limit: route.bodyLimit, Allow: func() error {
			return h.checkLargeBody(r.Context(), &a, route.endpointName())
		}})()
	}
	do, decodeErr := route.endpoint(r)
	worker.Release(r.Context()) // the log may not answer
	if isAnsweredBeforeQuota(problem.StatusOf(decodeErr)) {
		return kit.Response{}, decodeErr
	}
	m := &metering{h: h, authentication: &a, route: route}
	return m.run(r.Context(), func(ctx context.Context) (v kit.Response, err error) {
		if err = decodeErr; err == nil {
			v, err = do(ctx, call{Principal: caller{a.Grant, h.Now(), m}, Vars: vars, Answer: answer})
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

// metering is the metering of one request, from Admit before its work to the SettleFunc after it.
type metering struct {
	h              *handler
	authentication *auth.Authentication
	route          route
	settle         SettleFunc
	isCounted      bool // before the work
}

// run does the work between the two halves of metering it. Work that panics is
// settled as the 500 that it becomes, and the panic continues. An error of settling is answered in place of the result, which is
// discarded. A body that shows the usage is completed with what was settled.
func (m *metering) run(ctx context.Context, do func(context.Context) (kit.Response, error)) (v kit.Response, err error) {
	before := int64(0)
	if m.route.isWrite() {
		before = 1
	}
	if err := m.admit(ctx, before); err != nil {
		return kit.Response{}, err
	}
	status := http.StatusInternalServerError
	defer func() {
		spent, refused := m.end(ctx, status)
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
	v, err = m.runOperation(ctx, do)
	status = problem.StatusOf(err)
	return v, err
}

// runOperation does the work. A write was counted before, durably: it continues though its client goes away, so that what it
// did can be settled, and it ends within commandTimeout whatever the log does.
func (m *metering) runOperation(ctx context.Context, do func(context.Context) (kit.Response, error)) (kit.Response, error) {
	switch {
	case m.route.isFile():
		return do(ctx)
	case !m.route.isWrite():
		return m.h.runShared(ctx, m.authentication.Account, do)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commandTimeout)
	defer cancel()
	ctx, task := m.h.newTask(ctx, m.authentication.Account) // for geocoding
	defer task.Release()
	return do(ctx)
}

// admit admits a request to the work, with n requests counted before it. Admitting may wait for the log, so the key is checked
// again. If it turns out to be no longer valid, what was counted is refunded. An operation whose size shows only when it is under way
// calls it again; then that is what is settled.
func (m *metering) admit(ctx context.Context, before int64) error {
	a := m.authentication
	settle, err := m.h.meter.Admit(ctx, a, m.route.endpointName(), before)
	refused := m.h.authenticator.Revalidate(ctx, a)
	switch {
	case refused != nil && err == nil && before > 0:
		ctx, cancel := a.Wait.Detach(ctx)
		defer cancel()
		settle(ctx, problem.StatusOf(refused))
	case refused == nil && err == nil:
		m.settle, m.isCounted = settle, before > 0
	}
	if refused != nil {
		return refused
	}
	return err
}

// end ends the metering, with the status of the answer. A file that is answered is not counted here: its rows were. A write has been
// done by now, so its answer is sent whatever became of the key. The key of a request that only read is checked once more: if it is no
// longer valid, the request is refused, and what was counted is refunded.
func (m *metering) end(ctx context.Context, status int) (usage.QuotaUsage, error) {
	switch {
	case m.route.isFile() && status == http.StatusOK:
		return usage.QuotaUsage{}, nil
	case m.route.isWrite():
		return m.settle(ctx, status)
	case m.isCounted:
		return m.endCounted(ctx, status)
	}
	spent, err := m.settle(ctx, status)
	refused := m.h.authenticator.Revalidate(ctx, m.authentication)
	if refused == nil {
		return spent, err
	}
	ctx, cancel := m.authentication.Wait.Detach(ctx)
	defer cancel()
	if err := spent.Refund(ctx); err != nil {
		m.h.Log.Warn("a refund is not durable yet", "account", m.authentication.Account, "endpoint", m.route.endpointName(), "reason", err)
	}
	return usage.QuotaUsage{}, refused
}

// endCounted ends the metering of a request that only read and was counted before its work: its key is checked before it is settled.
func (m *metering) endCounted(ctx context.Context, status int) (usage.QuotaUsage, error) {
	refused := m.h.authenticator.Revalidate(ctx, m.authentication)
	if refused != nil {
		status = problem.StatusOf(refused)
	}
	spent, err := m.settle(ctx, status)
	if refused != nil {
		return usage.QuotaUsage{}, refused
	}
	return spent, err
}
