package customers

import (
	"context"
	"net/http"
	"strings"
	"sync"
)

// ask sends one request that only reads, and counts.
func (a *actor) ask(ctx context.Context) {
	k := a.activeKey()
	if k == nil {
		return
	}
	r := api("GET", "/me", nil)
	ans := a.send(ctx, k, a.act.Instance, r)
	a.customer(k).expect(r, ans, a.readStatuses(k)...)
	a.checkEarlyRefusal(ans)
}

// readStatuses are the statuses of a request with a key that is right in itself.
func (a *actor) readStatuses(k *key) []int {
	all := []int{http.StatusOK, http.StatusTooManyRequests}
	if !k.isRevoked.is(false) || !a.account.isClosed.is(false) {
		all = append(all, http.StatusUnauthorized)
	}
	return all
}

// askAtOnce sends many requests at once, to all instances: enough to use up a small quota.
func (a *actor) askAtOnce(ctx context.Context) {
	k := a.activeKey()
	if k == nil {
		return
	}
	answers, r := make([]Answer, 5+a.random.IntN(26)), api("GET", "/me", nil)
	var asking sync.WaitGroup
	for i := range answers {
		asking.Go(func() { answers[i] = a.customer(k).once(ctx, i, API, api("GET", "/me", nil)) })
	}
	asking.Wait()
	for _, ans := range answers {
		a.book(k, r, ans)
	}
	for _, ans := range answers {
		a.customer(k).expect(r, ans, a.readStatuses(k)...)
		a.checkEarlyRefusal(ans)
	}
}

// checkEarlyRefusal reports a 429 while the quota cannot be used up. It is called once all answers are booked that the quota was
// used for. On a day on which a period may end it is silent: which period counts depends on the clock.
func (a *actor) checkEarlyRefusal(ans Answer) {
	if ans.Status != http.StatusTooManyRequests || a.account.periodMayEnd {
		return
	}
	used := a.account.periodTotal + a.account.today.served + a.account.today.unknown
	if limit := a.account.quota.possible[0]; used < limit {
		a.world.Report(NotRefusedEarly, "%s is refused at %d requests of %d (%d of them without an answer): %s",
			a.account.ID, used, limit, a.account.today.unknown, shorten(ans.Body))
	}
}

// askForNothing sends requests that are wrong, and do not count, or name what is not there.
func (a *actor) askForNothing(ctx context.Context) {
	k := a.activeKey()
	if k == nil {
		return
	}
	for _, q := range []struct {
		request Request
		status  int
	}{
		{api("GET", "/address/autocomplete", nil), http.StatusBadRequest},
		{api("GET", "/nowhere", nil), http.StatusNotFound},
		{api("DELETE", "/me", nil), http.StatusMethodNotAllowed},
	} {
		ans := a.customer(k).once(ctx, a.act.Instance, API, q.request)
		if ans.Status == http.StatusNotFound {
			ans.Status = http.StatusBadRequest // an unknown route does not count
			q.status = http.StatusBadRequest
		}
		a.book(k, q.request, ans)
		a.customer(k).expect(q.request, ans, q.status, http.StatusTooManyRequests, http.StatusUnauthorized)
	}
}

// showAccount and the other readers of the customer area check the status, and whose data it is.
func (a *actor) showAccount(ctx context.Context) {
	r := a.area("GET", "", nil)
	ans := a.operator.once(ctx, a.act.Instance, Area, r)
	a.operator.expect(r, ans, http.StatusOK)
	if ans.Status == http.StatusOK && !strings.Contains(string(ans.Body), `"id":"`+a.account.ID+`"`) {
		a.world.Report(NoStrangersData, "%s shows %s", a.account.ID, shorten(ans.Body))
	}
}

func (a *actor) listKeys(ctx context.Context) { a.look(ctx, a.area("GET", "/keys", nil)) }
func (a *actor) readHistory(ctx context.Context) {
	a.look(ctx, a.area("GET", "/history?limit=50", nil))
}
func (a *actor) readUsage(ctx context.Context) { a.look(ctx, a.area("GET", "/usage", nil)) }
func (a *actor) bill(ctx context.Context) {
	a.look(ctx, Request{Method: "GET", Path: "/customer-area/v1/usage?format=json"})
}
func (a *actor) showProjections(ctx context.Context) {
	a.look(ctx, Request{Method: "GET", Path: "/customer-area/v1/projections"})
}

// look sends a request of an operator that reads.
func (a *actor) look(ctx context.Context, r Request) {
	a.operator.expect(r, a.operator.once(ctx, a.act.Instance, Area, r), http.StatusOK)
}

// reconcile reconciles while others ask: what differs then is looked at when all is quiet.
func (a *actor) reconcile(ctx context.Context) {
	a.look(ctx, Request{Method: "POST", Path: "/customer-area/v1/usage:reconcile", Body: []byte("{}")})
}

// rebuild has one read model filled again, while everybody works.
func (a *actor) rebuild(ctx context.Context) {
	names := []string{"register", "history", "places", "usage"}
	r := Request{Method: "POST", Path: "/customer-area/v1/projections/" + names[a.random.IntN(len(names))] + ":rebuild", Body: []byte("{}")}
	a.operator.expect(r, a.operator.once(ctx, a.act.Instance, Area, r), http.StatusAccepted)
}
