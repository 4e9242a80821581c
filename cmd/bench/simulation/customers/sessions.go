package customers

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"time"

	"lieudit/cmd/bench/model"
)

// cookiePrefix begins the names of the cookies of sessions.
const cookiePrefix = "__Host-"

// sessionKinds are what people do with browsers: come in with a link, look around, leave. The model treats a session as one more token.
func sessionKinds() []kind {
	return []kind{
		{"come in", 3, (*Customers).comeIn, 0, 0, true},
		{"look in a session", 5, (*Customers).lookInSession, 0, 0, false},
		{"end session", 2, (*Customers).endSession, 0, 0, true},
		{"end all sessions", 1, (*Customers).endSessions, 0, 0, true},
	}
}

// sessionHolder returns the label of the token that an act opens sessions of: a customer's, an agency's or an auditor's.
func (c *Customers) sessionHolder(ctx context.Context, act actDetails) string {
	switch act.Pick % 4 {
	case 0:
		return c.token(ctx, act, "auditor", "")
	case 1:
		return c.token(ctx, act, "agency", accountID(act.Pick%agencyCount))
	}
	return c.token(ctx, act, "customer", act.Account)
}

// findSession returns a session of the token that an act opens sessions of, ended or not, and that token.
func (c *Customers) findSession(ctx context.Context, act actDetails) (session, holder string) {
	if holder = c.sessionHolder(ctx, act); holder != "" {
		session, _ = c.Model.FindSession(holder, act.Pick)
	}
	return session, holder
}

// comeIn makes a link, in a session if there is one, and uses it on two instances at once and a moment later again. One session is opened.
func (c *Customers) comeIn(ctx context.Context, act actDetails) {
	holder := c.sessionHolder(ctx, act)
	if holder == "" {
		return
	}
	op := act.operation("")
	op.Endpoint, op.Token = "POST /sessions:link", holder
	if session, open := c.Model.FindSession(holder, act.Pick); open > 0 && act.Pick%3 == 0 {
		op.Token = session
	}
	link, ok := decode[struct {
		URL string `json:"lien"`
	}](c.send(ctx, op, message{method: "POST", path: "/sessions:link", body: map[string]any{}}))
	if !ok {
		return
	}
	time.Sleep(knownEverywhere)
	var opened [3]bool
	var using sync.WaitGroup
	for i := range 2 {
		using.Go(func() { opened[i] = c.useLink(ctx, (act.Instance+i)%c.world.Instances(), holder, link.URL) })
	}
	using.Wait()
	if act.Pick%4 == 0 { // seldom: failed attempts are paced
		opened[2] = c.useLink(ctx, act.Instance, holder, link.URL)
	}
	if n := len(slices.DeleteFunc(opened[:], func(is bool) bool { return !is })); n > 1 {
		c.world.Report(model.LinkOpensOnce, "%s a link of token %s opened %d sessions", act.Label, holder, n)
	}
}

// useLink uses a link on an instance, and tells the model of a session that it opens.
func (c *Customers) useLink(ctx context.Context, instance int, holder, link string) (isOpened bool) {
	text, _ := json.Marshal(map[string]string{"preuve": link})
	a := c.world.Call(ctx, instance, Area, Request{Method: "POST", Path: "/customer-area/v1/sessions", Header: http.Header{}, Body: text})
	if a.Status != 0 && !slices.Contains([]int{201, 401, 409, 429, 500, 503}, a.Status) {
		c.world.Report(model.KnownStatus, "POST /sessions: %d %s", a.Status, a.Body)
	}
	shown, ok := decode[struct {
		ID      string
		Expires time.Time `json:"expire_le"`
	}](a)
	if !ok {
		return false
	}
	for _, cookie := range (&http.Response{Header: a.Header}).Cookies() {
		c.Model.OpenedSession(shown.ID, holder, cookie.Name+"="+cookie.Value, shown.Expires)
	}
	return true
}

// lookInSession looks at an account in a session, ended or not.
func (c *Customers) lookInSession(ctx context.Context, act actDetails) {
	op := act.operation(act.Account)
	op.Endpoint = "GET /accounts/{id}/keys"
	if op.Token, _ = c.findSession(ctx, act); op.Token != "" {
		c.send(ctx, op, message{method: "GET", path: act.accountPath() + "/keys"})
	}
}

// endSession ends a session, in it or with its token, and keeps looking in it.
func (c *Customers) endSession(ctx context.Context, act actDetails) {
	id, holder := c.findSession(ctx, act)
	if id == "" {
		return
	}
	op := act.operation("")
	op.Endpoint, op.Token = "DELETE /sessions/{session}", holder
	if act.Pick%2 == 0 {
		op.Token = id
	}
	c.Model.RevokesToken(id, false)
	if a := c.send(ctx, op, message{method: "DELETE", path: "/sessions/" + id}); a.Status == http.StatusOK {
		c.Model.RevokesToken(id, true)
	}
	c.lookTwice(ctx, act, id)
}

// endSessions ends all sessions of a token, and keeps looking in one of them.
func (c *Customers) endSessions(ctx context.Context, act actDetails) {
	id, holder := c.findSession(ctx, act)
	if id == "" {
		return
	}
	op := act.operation("")
	op.Endpoint, op.Token = "DELETE /sessions", holder
	c.Model.EndsSessions(holder, false)
	if a := c.send(ctx, op, message{method: "DELETE", path: "/sessions"}); a.Status == http.StatusOK {
		c.Model.EndsSessions(holder, true)
	}
	c.lookTwice(ctx, act, id)
}

// lookTwice looks in a session on two instances, at once and when every instance knows its end.
func (c *Customers) lookTwice(ctx context.Context, act actDetails, session string) {
	for range 2 {
		op := act.operation(act.Account)
		op.Token, op.Endpoint = session, "GET /accounts/{id}/keys"
		c.sendOnce(ctx, op, message{method: "GET", path: act.accountPath() + "/keys"})
		act.Instance = (act.Instance + 1) % c.world.Instances()
		time.Sleep(knownEverywhere)
	}
}
