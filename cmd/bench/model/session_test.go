package model

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// A session is as good as its token until it is ended, its token is, or its time is over.
func TestASessionIsATokenThatEnds(t *testing.T) {
	t.Parallel()
	const later = 2 * time.Second
	for name, c := range map[string]struct {
		happens func(*Model)
		wait    time.Duration
		status  int
		want    []Rule
	}{
		"it is open":                      {func(*Model) {}, later, 200, nil},
		"it is open and refused":          {func(*Model) {}, later, 401, []Rule{ActiveIsAccepted}},
		"it is new":                       {func(*Model) {}, 0, 401, nil},
		"it is not of this account":       {func(m *Model) { m.tokens["s"].account = "compte-02" }, later, 200, []Rule{RoleIsHeld}},
		"it was ended":                    {func(m *Model) { m.RevokesToken("s", true) }, later, 401, nil},
		"it was ended and is good":        {func(m *Model) { m.RevokesToken("s", true) }, later, 200, []Rule{RevokedIsRefused}},
		"it was ended just now":           {func(m *Model) { m.RevokesToken("s", true) }, 0, 200, nil},
		"it may have been ended":          {func(m *Model) { m.RevokesToken("s", false) }, later, 200, nil},
		"its token was revoked":           {func(m *Model) { m.RevokesToken("t", false); m.RevokesToken("t", true) }, later, 200, []Rule{RevokedIsRefused}},
		"all were ended":                  {func(m *Model) { m.EndsSessions("t", false); m.EndsSessions("t", true) }, later, 200, []Rule{RevokedIsRefused}},
		"all may have been ended":         {func(m *Model) { m.EndsSessions("t", false) }, later, 401, nil},
		"another's were ended":            {func(m *Model) { m.EndsSessions("u", true) }, later, 401, []Rule{ActiveIsAccepted}},
		"it was opened while others end":  {func(m *Model) { m.EndsSessions("t", false); m.OpenedSession("s", "t", "", wall.AddDate(0, 0, 14)) }, later, 401, nil},
		"its time is over by some clock":  {func(m *Model) { m.tokens["s"].expires = wall.Add(time.Minute) }, later, 401, nil},
		"another session of it was ended": {func(m *Model) { m.OpenedSession("r", "t", "", wall); m.RevokesToken("r", true) }, later, 401, []Rule{ActiveIsAccepted}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var broken []Rule
				m := New(func(rule Rule, _ string, _ ...any) { broken = append(broken, rule) })
				m.IssuedToken("t", "customer", "compte-01", "text")
				m.IssuedToken("u", "customer", "compte-01", "text")
				m.OpenedSession("s", "t", "cookie", wall.AddDate(0, 0, 14))
				if c.wait > 0 {
					time.Sleep(later)
				}
				c.happens(m)
				time.Sleep(c.wait)
				op := inArea("compte-01", "GET /accounts/{id}/keys", nil)
				op.Token = "s"
				m.End(m.Begin(op, wall), Answer{Status: c.status, Body: []byte("{}"), IsSent: true}, wall)
				if !slices.Equal(broken, c.want) {
					t.Errorf("broken: %q, want %q", broken, c.want)
				}
			})
		})
	}
}
