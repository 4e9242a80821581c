package customers

import (
	"context"
	"net/http"
	"slices"
	"time"
)

// openAccount opens the actor's account, with a key.
func (a *actor) openAccount(ctx context.Context) {
	r := Request{Method: "POST", Path: "/customer-area/v1/accounts", Body: encode(map[string]any{
		"id": a.account.ID, "nom": a.account.Name, "plan": a.account.Plan, "quota": a.account.quota.possible[0]})}
	t := a.operator.persist(ctx, a.act.Instance, Area, r)
	switch {
	case t.isDone(), t.Status == http.StatusConflict && (t.isUnknown || a.account.isOpen.allows(true)):
		a.account.isOpen = known(true)
	case t.isUnknown:
		a.account.isOpen = a.account.isOpen.become(true, false)
	default:
		a.operator.expect(r, t.Answer, http.StatusCreated)
	}
	if a.account.isOpen.is(true) && len(a.account.keys) == 0 {
		a.issueKey(ctx)
	}
}

// issueKey issues a secret key. One whose answer is lost may be there, but nobody has its token.
func (a *actor) issueKey(ctx context.Context) {
	if len(a.account.keys) > 12 {
		return
	}
	r := a.area("POST", "/keys", map[string]any{"kind": "secret", "label": "clé de production"})
	ans := a.operator.once(ctx, a.act.Instance, Area, r)
	var issued struct{ ID, Token string }
	switch {
	case ans.read(&issued):
		a.account.keys = append(a.account.keys, &key{ID: issued.ID, Token: issued.Token, issuedAt: a.elapsed(), isRevoked: known(false)})
	case ans.Status == 0 || ans.Status >= 500:
		if ans.IsSent {
			a.account.unknownKeys++
		}
	default:
		a.operator.expect(r, ans, a.statusesOf(http.StatusCreated)...)
	}
}

// statusesOf are the statuses that a write on the account may have: the one of success, and what a closed account answers.
func (a *actor) statusesOf(success int) []int {
	switch {
	case a.account.isClosed.is(true):
		return []int{http.StatusConflict}
	case a.account.isClosed.is(false):
		return []int{success}
	}
	return []int{success, http.StatusConflict}
}

// revokeKey revokes one of the keys, but the first.
func (a *actor) revokeKey(ctx context.Context) {
	if len(a.account.keys) < 2 {
		return
	}
	k := a.account.keys[1+a.random.IntN(len(a.account.keys)-1)]
	r := a.area("POST", "/keys/"+k.ID+":revoke", map[string]any{"reason": "rotation"})
	before := k.isRevoked
	k.isRevoked = before.become(true, false) // requests at the same time may be refused
	t := a.operator.persist(ctx, a.act.Instance, Area, r)
	switch {
	case t.isDone():
		if k.revokedAt == 0 {
			k.revokedAt = a.elapsed()
		}
		k.isRevoked = known(true)
	case !t.isUnknown:
		k.isRevoked = before
		a.operator.expect(r, t.Answer, a.statusesOf(http.StatusOK)...)
	}
}

// askWithRevokedKey asks every instance with a key that was revoked more than a second ago, or of an account closed as long ago.
func (a *actor) askWithRevokedKey(ctx context.Context) {
	for _, k := range slices.Concat(a.account.keys, a.account.lostKeys) {
		ended := k.revokedAt
		if ended == 0 {
			ended = a.account.closedAt
		}
		if ended == 0 || a.elapsed()-ended <= int64(time.Second) {
			continue
		}
		for i := range a.world.Instances() {
			r := api("GET", "/me", nil)
			ans := a.customer(k).once(ctx, i, API, r)
			if ans.Status != 0 && ans.Status != http.StatusUnauthorized && ans.Status < 500 {
				a.world.Report(RevokedRefused, "instance %d answers %d to the key %s of %s, which ended %v ago: %s",
					i, ans.Status, k.ID, a.account.ID, time.Duration(a.elapsed()-ended), shorten(ans.Body))
			}
		}
	}
}

// closeAccount closes one account in some; most customers stay.
func (a *actor) closeAccount(ctx context.Context) {
	if a.random.IntN(4) > 0 || a.account.isClosed.is(true) {
		return
	}
	r := a.area("POST", ":close", map[string]any{"id": a.account.ID, "reason": "fin du contrat"})
	before := a.account.isClosed
	a.account.isClosed = before.become(true, false)
	t := a.operator.persist(ctx, a.act.Instance, Area, r)
	switch {
	case t.isDone(), t.Status == http.StatusConflict && !before.is(false):
		a.account.isClosed, a.account.closedAt = known(true), a.elapsed()
	case !t.isUnknown:
		a.account.isClosed = before
		a.operator.expect(r, t.Answer, http.StatusOK, http.StatusConflict)
	}
}

// eraseAccount erases an account that is closed.
func (a *actor) eraseAccount(ctx context.Context) {
	if !a.account.isClosed.is(true) {
		return
	}
	r := a.area("POST", ":erase", map[string]any{"id": a.account.ID, "reason": "demande"})
	a.account.isErased = a.account.isErased.become(true, false)
	t := a.operator.persist(ctx, a.act.Instance, Area, r)
	if t.isDone() {
		a.account.isErased = known(true)
		return
	}
	a.operator.expect(r, t.Answer, http.StatusOK)
}

// raiseQuota raises the quota, which acts at once: by the wall clock of the instance, which may be ahead.
func (a *actor) raiseQuota(ctx context.Context) {
	if a.account.Plan == "DISCOVERY" || !a.account.isClosed.is(false) {
		return
	}
	to := slices.Max(a.account.quota.possible) + 20
	r := a.area("POST", ":plan", map[string]any{"plan": a.account.Plan, "quota": to})
	t := a.operator.persist(ctx, a.act.Instance, Area, r)
	if t.isDone() || t.isUnknown {
		a.account.quota, a.account.quotaIsNew, a.account.quotaRaisedTo = a.account.quota.become(to, false), true, 0
		if t.isDone() {
			a.account.quotaRaisedTo = to
		}
		return
	}
	a.operator.expect(r, t.Answer, http.StatusOK)
}
