package api_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"lieudit/commands/usage"
	"lieudit/eventstore/waitlimit"
	"lieudit/http/api"
	"lieudit/http/budget"
	"lieudit/queries/route"
	"lieudit/queries/worker"
	"lieudit/schemas/grant"
)

// costlyRouter is a fakeRouter that needs a worker for every matrix.
type costlyRouter struct{ fakeRouter }

func (r *costlyRouter) Matrix(ctx context.Context, q route.MatrixQuery) (route.Matrix, error) {
	if err := worker.Acquire(ctx); err != nil {
		return route.Matrix{}, err
	}
	return r.fakeRouter.Matrix(ctx, q)
}

const (
	matrixPath  = "/route/matrix?origins=3.5,44.5&destinations=3.6,44.6"
	computePath = "/route/compute?origin=3.5,44.5&destination=3.6,44.6"
)

func TestCostlyQuestionsWaitForAWorkerAndOthersDoNot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		workers, meter := budget.New(1, 1), &fakeMeter{}
		b := newRoutingAPI(t, &costlyRouter{}, func(p *fakeParts) { p.env.Workers, p.meter = workers, meter })
		release, err := workers.Acquire(t.Context(), "another account", 1)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		for _, path := range []string{computePath, "/address/verify?q=12+avenue+foch+mende", "/me"} {
			expectResponse(t, path, b.send("GET", api.Base+path, "BUSINESS secret"), 200, "")
		}
		if waited := time.Since(began); waited != 0 {
			t.Errorf("questions that need no worker waited for %v", waited)
		}
		meter.counted = 0
		expectResponse(t, "no worker", b.send("GET", api.Base+matrixPath, "BUSINESS secret"), 500, overloaded)
		if waited := time.Since(began); waited != budget.MaxWait {
			t.Errorf("the matrix waited for %v, want %v", waited, budget.MaxWait)
		}
		if meter.counted != 0 {
			t.Errorf("a matrix without a worker counts as %d", meter.counted)
		}
		time.AfterFunc(time.Second, release)
		expectResponse(t, "a worker in a second", b.send("GET", api.Base+matrixPath, "BUSINESS secret"), 200, `"durations":[[`)
		if used := workers.Status(); used.Used != 0 || used.Waiting != 0 {
			t.Errorf("after all answers %+v", used)
		}
	})
}

// workerMeter is a meter that records how many workers are in use while it counts.
type workerMeter struct {
	fakeMeter
	workers *budget.Budget
	used    int64
}

func (m *workerMeter) CheckQuota(ctx context.Context, wait *waitlimit.Wait, g grant.Grant, endpoint string) error {
	m.used += m.workers.Status().Used
	return m.fakeMeter.CheckQuota(ctx, wait, g, endpoint)
}

func (m *workerMeter) Charge(ctx context.Context, wait *waitlimit.Wait, g grant.Grant, endpoint string, n int64) (usage.Charge, error) {
	m.used += m.workers.Status().Used
	return m.fakeMeter.Charge(ctx, wait, g, endpoint, n)
}

func (m *workerMeter) Settle(ctx context.Context, c usage.Charge, refunded int64) error {
	m.used += m.workers.Status().Used
	return m.fakeMeter.Settle(ctx, c, refunded)
}

func TestAWorkerIsGivenBackBeforeTheAnswerIsSettled(t *testing.T) {
	t.Parallel()
	workers := budget.New(1, 1)
	meter := &workerMeter{workers: workers}
	b := newRoutingAPI(t, &costlyRouter{}, func(p *fakeParts) { p.env.Workers, p.meter = workers, meter })
	expectResponse(t, "a matrix", b.send("GET", api.Base+matrixPath, "BUSINESS secret"), 200, "")
	if meter.used != 0 {
		t.Errorf("%d workers are in use while the answer is settled, want 0", meter.used)
	}
}
