package customers

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// maxReferentials are as many as the plan of the customers has, and syncSize is the most sites of a sync.
const (
	maxReferentials = 5
	syncSize        = 12
)

// writer is a key to write places with; nil where the account may not have any.
func (a *actor) writer() *key {
	if a.account.Plan == "DISCOVERY" {
		return nil
	}
	return a.activeKey()
}

// pickReferential is one of the account's referentials that is not archived; "" where there is none.
func (a *actor) pickReferential() (string, *referential) {
	var open []string
	for code, r := range a.account.referentials {
		if r.isArchived.is(false) {
			open = append(open, code)
		}
	}
	if len(open) == 0 {
		return "", nil
	}
	slices.Sort(open)
	code := open[a.random.IntN(len(open))]
	return code, a.account.referentials[code]
}

// openReferential makes a referential with a new code.
func (a *actor) openReferential(ctx context.Context) {
	k := a.writer()
	if k == nil || len(a.account.referentials) >= maxReferentials {
		return
	}
	code := fmt.Sprintf("ref-%d", len(a.account.referentials))
	r := api("POST", "/locations/referentiels", map[string]any{"code": code, "nom": mark(a.account.ID, code)})
	t := a.persistent(ctx, k, r)
	switch {
	case t.isDone(), t.Status == http.StatusConflict && t.isUnknown:
		a.account.referentials[code] = &referential{isArchived: known(false), possible: []sites{nil}}
	case t.isUnknown:
		a.account.unknownReferentials[code] = true
	default:
		allowed := append(a.writeStatuses(k), http.StatusCreated)
		if a.account.unknownReferentials[code] {
			allowed = append(allowed, http.StatusConflict)
			a.account.referentials[code] = &referential{isArchived: known(false), possible: []sites{nil}}
		}
		a.customer(k).expect(r, t.Answer, allowed...)
	}
}

// writeStatuses are the statuses of a write that are no fault of it.
func (a *actor) writeStatuses(k *key) []int { return a.readStatuses(k) }

// archiveReferential archives a referential, seldom.
func (a *actor) archiveReferential(ctx context.Context) {
	code, ref := a.pickReferential()
	if k := a.writer(); k != nil && ref != nil && len(a.account.referentials) > 2 {
		r := api("DELETE", "/locations/referentiels/"+code, nil)
		t := a.persistent(ctx, k, r)
		if t.isDone() || t.isUnknown {
			ref.isArchived = ref.isArchived.become(true, t.isDone())
			ref.apply(deactivateAll, t.isDone())
			return
		}
		a.customer(k).expect(r, t.Answer, a.writeStatuses(k)...)
	}
}

// write sends a write of sites and books what is known after it.
func (a *actor) write(ctx context.Context, k *key, ref *referential, r Request, made change, allowed ...int) tried {
	t := a.persistent(ctx, k, r)
	if t.isDone() || t.isUnknown {
		ref.apply(made, t.isDone())
	} else {
		a.customer(k).expect(r, t.Answer, append(a.writeStatuses(k), allowed...)...)
	}
	return t
}

// siteID is one of few, so that sites change often.
func (a *actor) siteID() string { return fmt.Sprintf("site-%d", a.random.IntN(15)) }

// newName is a name that no site has had.
func (a *actor) newName() string { return mark(a.account.ID, fmt.Sprintf("%x", a.random.Uint64())) }

func (a *actor) putSite(ctx context.Context) {
	code, ref := a.pickReferential()
	k := a.writer()
	if k == nil || ref == nil {
		return
	}
	id := a.siteID()
	for range 1 + a.random.IntN(4) { // somebody who corrects what was just written
		name := a.newName()
		r := api("PUT", "/locations/referentiels/"+code+"/sites/"+id, map[string]any{"nom": name, "lat": 44.5, "lon": 3.5})
		a.write(ctx, k, ref, r, put(id, name), http.StatusCreated)
		time.Sleep(time.Duration(a.random.Int64N(int64(time.Second))))
		a.act.Instance++
	}
}

func (a *actor) deactivateSite(ctx context.Context) {
	code, ref := a.pickReferential()
	k := a.writer()
	if k == nil || ref == nil {
		return
	}
	id := a.siteID()
	r := api("POST", "/locations/referentiels/"+code+"/sites/"+id+":deactivate", map[string]any{})
	a.write(ctx, k, ref, r, deactivate(id), http.StatusNotFound)
}

// newSet is a set of sites with new names.
func (a *actor) newSet() map[string]string {
	set := map[string]string{}
	for range 1 + a.random.IntN(syncSize) {
		set[a.siteID()] = a.newName()
	}
	return set
}

// bulk is so much text that a sync with it does not fit into one event.
var bulk = strings.Repeat("Ouvert sans rendez-vous. ", 600)

// syncRequest is a sync of a referential to a set. One of more than half of the sites is large.
func syncRequest(code string, set map[string]string) Request {
	var rows []map[string]any
	for _, id := range slices.Sorted(maps.Keys(set)) {
		row := map[string]any{"external_id": id, "nom": set[id], "lat": 44.5, "lon": 3.5}
		if len(set) > syncSize/2 {
			row["proprietes"] = map[string]any{"accueil": bulk}
		}
		rows = append(rows, row)
	}
	return api("POST", "/locations/referentiels/"+code+"/sites:sync", map[string]any{"sites": rows, "confirmer_reduction": true})
}

func (a *actor) syncSites(ctx context.Context) {
	code, ref := a.pickReferential()
	if k := a.writer(); k != nil && ref != nil {
		set := a.newSet()
		a.write(ctx, k, ref, syncRequest(code, set), syncTo(set))
	}
}

// syncTwice sends a sync with an Idempotency-Key two times, one after the other or at once. Both answers must be the same.
func (a *actor) syncTwice(ctx context.Context) {
	code, ref := a.pickReferential()
	k := a.writer()
	if k == nil || ref == nil {
		return
	}
	set := a.newSet()
	newRequest := func() Request {
		r := syncRequest(code, set)
		r.Header = http.Header{"Idempotency-Key": {fmt.Sprintf("sync-%x", a.act.Seed)}}
		return r
	}
	var second tried
	var sending sync.WaitGroup
	isAtOnce := a.random.IntN(2) == 0
	if isAtOnce {
		other := *a
		sending.Go(func() { second = other.tryWithoutBooking(ctx, k, newRequest()) })
	}
	first := a.write(ctx, k, ref, newRequest(), syncTo(set))
	if isAtOnce {
		sending.Wait()
		a.bookTried(k, second)
		ref.apply(syncTo(set), second.isDone())
	} else {
		second = a.write(ctx, k, ref, newRequest(), syncTo(set))
	}
	if first.isDone() && second.isDone() && !bytes.Equal(first.Body, second.Body) {
		a.world.Report(SameKeySameAnswer, "%s %s: first %s, then %s", a.account.ID, code, shorten(first.Body), shorten(second.Body))
	}
}

// tryWithoutBooking sends a request once, beside another one of the same account. bookTried books it when both are over.
func (a *actor) tryWithoutBooking(ctx context.Context, k *key, r Request) (t tried) {
	t.Answer = a.customer(k).once(ctx, a.act.Instance+1, API, r)
	t.isUnknown = t.IsSent && (t.Status == 0 || t.Status >= 500)
	return t
}

func (a *actor) bookTried(k *key, t tried) {
	a.book(k, Request{Method: "POST", Path: "sites:sync"}, t.Answer)
}

// syncAtOnce sends two different sets to two instances at once. Each takes effect whole, in one order or the other.
func (a *actor) syncAtOnce(ctx context.Context) {
	code, ref := a.pickReferential()
	k := a.writer()
	if k == nil || ref == nil {
		return
	}
	one, two := a.newSet(), a.newSet()
	var first, second tried
	var sending sync.WaitGroup
	other := *a
	sending.Go(func() { second = other.tryWithoutBooking(ctx, k, syncRequest(code, two)) })
	first = a.tryWithoutBooking(ctx, k, syncRequest(code, one))
	sending.Wait()
	a.bookTried(k, first)
	a.bookTried(k, second)
	unmade := func(s sites) sites { return s }
	choose := func(t tried, set map[string]string) change {
		if t.isDone() || t.isUnknown {
			return syncTo(set)
		}
		return unmade
	}
	ref.applyBoth(choose(first, one), choose(second, two), !first.isUnknown, !second.isUnknown)
}

// search asks for the account's sites. Right in itself, whatever it finds: what it must find is looked at when all is quiet.
func (a *actor) searchSites(ctx context.Context) {
	a.readPlaces(ctx, "/locations/search?q=lieu&statut=tous")
}
func (a *actor) readChanges(ctx context.Context) { a.readPlaces(ctx, "/locations/changes?limit=50") }
func (a *actor) exportSites(ctx context.Context) {
	if code, ref := a.pickReferential(); ref != nil {
		a.readPlaces(ctx, "/locations/referentiels/"+code+"/sites:export?format=ndjson")
	}
}

func (a *actor) readPlaces(ctx context.Context, path string) {
	if k := a.writer(); k != nil {
		r := api("GET", path, nil)
		a.customer(k).expect(r, a.send(ctx, k, a.act.Instance, r), a.readStatuses(k)...)
	}
}
