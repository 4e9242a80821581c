package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"lieudit/commands/usage"
	"lieudit/eventstore/waitlimit"
	"lieudit/http/auth"
	"lieudit/http/budget"
	"lieudit/http/kit"
	"lieudit/http/problem"
	"lieudit/schemas/grant"
	"lieudit/schemas/plan"
	"lieudit/schemas/refusal"
	"lieudit/schemas/token"
)

// tally is a meter of one account. It keeps what is counted, and how many charges are open.
type tally struct {
	counted, open int64
	chargeErr     error
	charging      func()      // is called by each Charge; nil: nothing
	refunding     func(error) // is told whether a refund came with an ended context; nil: nobody is
}

func (t *tally) CheckQuota(context.Context, *waitlimit.Wait, grant.Grant, string) error { return nil }

func (t *tally) Charge(_ context.Context, _ *waitlimit.Wait, _ grant.Grant, _ string, n int64) (usage.Charge, error) {
	if t.charging != nil {
		t.charging()
	}
	if t.chargeErr != nil {
		return usage.Charge{}, t.chargeErr
	}
	t.counted += n
	t.open++
	return usage.Charge{QuotaUsage: usage.QuotaUsage{Used: t.counted}}, nil
}

func (t *tally) Settle(ctx context.Context, _ usage.Charge, refunded int64) error {
	t.counted -= refunded
	t.open--
	if t.refunding != nil {
		t.refunding(ctx.Err())
	}
	return nil
}

// endingKey is a ring with one key, which may end. What it says is never relied on twice.
type endingKey struct{ hasEnded bool }

func (k *endingKey) FindKey(token.Hash, time.Time) (grant.Grant, bool) {
	return grant.Grant{Account: "acme", Terms: grant.Terms{Plan: plan.Business}}, !k.hasEnded
}
func (k *endingKey) IsFresh(time.Time) bool           { return true }
func (k *endingKey) FreshUntil() time.Time            { return time.Now().Add(time.Nanosecond) }
func (k *endingKey) AwaitFresh(context.Context) error { return nil }

// kindOfRequest is what a request is counted as before its work.
type kindOfRequest int

const (
	read  kindOfRequest = iota
	write               // one request
	sized               // six requests, reserved by the operation
	file                // six rows, reserved by the operation
)

// requestEnd is one way in which a request ends.
type requestEnd struct {
	kind     kindOfRequest
	status   int  // of the answer; 0: the work panics
	isGone   bool // the client leaves during the work
	endsAt   string
	answered int64 // rows of a file
	err      error // of the meter

	counted, countedByAll int64 // by the default policy and by CountAll
	answer                int   // the status that is sent
}

func TestEveryEndOfARequestCountsWhatItShould(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]requestEnd{
		"a read":                                    {read, 200, false, "", 0, nil, 1, 1, 200},
		"a read refused":                            {read, 422, false, "", 0, nil, 1, 1, 422},
		"a read of nothing":                         {read, 404, false, "", 0, nil, 1, 1, 404},
		"a read that the plan lacks":                {read, 403, false, "", 0, nil, 0, 1, 403},
		"a read too large":                          {read, 413, false, "", 0, nil, 0, 1, 413},
		"a read failed":                             {read, 500, false, "", 0, nil, 0, 1, 500},
		"a read without the logs":                   {read, 503, false, "", 0, nil, 0, 0, 503},
		"a read that panics":                        {read, 0, false, "", 0, nil, 0, 1, 500},
		"a read whose client is gone":               {read, 200, true, "", 0, nil, 1, 1, 200},
		"a read at the cap by then":                 {read, 200, false, "", 0, &usage.QuotaExceededError{}, 0, 0, 429},
		"a read whose append is unknown":            {read, 200, false, "", 0, usage.ErrUnavailable, 0, 0, 503},
		"a read with a key that ended in its work":  {read, 200, false, "work", 0, nil, 0, 0, 401},
		"a read with a key that ended in its count": {read, 200, false, "charge", 0, nil, 0, 0, 401},
		"a failed read with a key that ended":       {read, 500, false, "work", 0, nil, 0, 0, 401},

		"a write":                                    {write, 200, false, "", 0, nil, 1, 1, 200},
		"a write refused":                            {write, 409, false, "", 0, nil, 1, 1, 409},
		"a write failed":                             {write, 500, false, "", 0, nil, 0, 1, 500},
		"a write that panics":                        {write, 0, false, "", 0, nil, 0, 1, 500},
		"a write whose client is gone":               {write, 200, true, "", 0, nil, 1, 1, 200},
		"a failed write whose client is gone":        {write, 500, true, "", 0, nil, 0, 1, 500},
		"a write at the cap":                         {write, 200, false, "", 0, &usage.QuotaExceededError{}, 0, 0, 429},
		"a write whose append is unknown":            {write, 200, false, "", 0, usage.ErrUnavailable, 0, 0, 503},
		"a write with a key that ended in its count": {write, 200, false, "charge", 0, nil, 0, 0, 401},
		"a write with a key that ended in its work":  {write, 200, false, "work", 0, nil, 1, 1, 200},

		"a matrix":                                    {sized, 200, false, "", 0, nil, 6, 6, 200},
		"a matrix refused":                            {sized, 422, false, "", 0, nil, 1, 1, 422},
		"a matrix failed":                             {sized, 500, false, "", 0, nil, 0, 1, 500},
		"a matrix that panics":                        {sized, 0, false, "", 0, nil, 0, 1, 500},
		"a matrix whose client is gone":               {sized, 500, true, "", 0, nil, 0, 1, 500},
		"a matrix over the cap":                       {sized, 200, false, "", 0, &usage.QuotaExceededError{}, 0, 0, 429},
		"a matrix with a key that ended in its count": {sized, 200, false, "charge", 0, nil, 0, 0, 401},
		"a matrix with a key that ended in its work":  {sized, 200, false, "work", 0, nil, 0, 0, 401},

		"a file":                                    {file, 200, false, "", 6, nil, 6, 6, 200},
		"a file with rows that are not answered":    {file, 200, false, "", 4, nil, 4, 4, 200},
		"a file whose client leaves in the middle":  {file, 200, true, "", 2, nil, 2, 2, 200},
		"a file that panics once it is counted":     {file, 0, false, "", 0, nil, 0, 1, 500},
		"a file over the cap":                       {file, 200, false, "", 0, &usage.QuotaExceededError{}, 0, 0, 429},
		"a file with a key that ended in its count": {file, 200, false, "charge", 0, nil, 0, 0, 401},
	} {
		for policy, want := range map[CountingPolicy]int64{{}: c.counted, CountAll: c.countedByAll} {
			t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { c.check(t, policy, want) }) })
		}
	}
}

// check runs a request to its end, and then ends it once more.
func (c requestEnd) check(t *testing.T, policy CountingPolicy, want int64) {
	key, meter, uncounted := &endingKey{}, &tally{chargeErr: c.err}, 0
	h := &handler{meter: meter, Env: Env{Counting: policy, Log: slog.New(slog.DiscardHandler), Workers: NewWorkers(), Searches: NewSearches()}}
	h.authenticator = auth.NewAuthenticator(key, waitlimit.New(waitlimit.MaxRequests), token.DefaultPrefixes, searchPath, time.Now)
	r := httptest.NewRequest("GET", Base+"/me", nil)
	r.Header.Set("Authorization", "Bearer "+token.DefaultPrefixes.New(token.Secret))
	a, err := h.authenticator.Authenticate(http.Header{}, r)
	if err != nil {
		t.Fatal(err)
	}
	meter.charging = func() {
		time.Sleep(time.Millisecond) // then the key is looked up again
		key.hasEnded = key.hasEnded || c.endsAt == "charge"
	}
	meter.refunding = func(ended error) {
		if ended != nil {
			uncounted++
		}
	}
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	quota := &reservation{Authentication: &a, h: h, endpoint: "GET /me", isWrite: c.kind == write, isFile: c.kind == file}
	status := c.run(ctx, leave, h, quota, key)
	if status != c.answer || meter.counted != want || meter.open != 0 || uncounted != 0 {
		t.Errorf("with %+v: %d, %d counted, %d charges open, %d refunds with an ended context; want %d, %d", policy, status, meter.counted, meter.open, uncounted, c.answer, want)
	}
	if used := quota.Usage().Used; c.kind == read && c.answer == http.StatusOK && used != 1 {
		t.Errorf("%d used, want this request included", used)
	}
	if err := quota.settle(ctx, http.StatusOK); err != nil && c.err == nil {
		t.Error(err)
	}
	if quota.Refund(ctx, 6); meter.counted != want || meter.open != 0 {
		t.Errorf("settled twice, %d are counted and %d charges open, want %d", meter.counted, meter.open, want)
	}
}

// run admits the request, does the work and sends the answer. It returns the status of the answer.
func (c requestEnd) run(ctx context.Context, leave func(), h *handler, quota *reservation, key *endingKey) (status int) {
	defer func() {
		if recover() != nil {
			status = http.StatusInternalServerError
		}
	}()
	v, err := h.runCounted(ctx, quota, func(ctx context.Context) (kit.Response, error) {
		if c.kind == sized || c.kind == file {
			if err := quota.Reserve(ctx, 6); err != nil {
				return kit.Response{}, err
			}
		}
		time.Sleep(time.Millisecond)
		key.hasEnded = key.hasEnded || c.endsAt == "work"
		if c.isGone {
			leave()
		}
		if c.status == 0 {
			panic("no work")
		}
		if c.kind == file {
			return kit.Response{Stream: func(ctx context.Context, _ http.ResponseWriter) error {
				quota.Refund(ctx, 6-c.answered)
				return nil
			}}, nil
		}
		return kit.Response{Status: http.StatusOK}, errorsByStatus[c.status]
	})
	if err == nil && v.Stream != nil {
		err = v.Stream(ctx, nil)
	}
	return problem.StatusOf(err)
}

// errorsByStatus has an error for each status.
var errorsByStatus = map[int]error{
	200: nil, 403: refusal.PlanInsufficient, 404: refusal.NotFound, 409: refusal.ReferentialArchived, 413: refusal.BodyTooLarge,
	422: refusal.AddressUnparsable, 500: errors.Join(errors.New("broken"), budget.ErrOverloaded), 503: refusal.AuthUnavailable,
}
