package areatoken_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lieudit/commands/areatoken"
	"lieudit/eventstore"
	"lieudit/eventstore/journal"
	"lieudit/schemas/event"
	"lieudit/schemas/grant"
	"lieudit/schemas/refusal"
	"lieudit/schemas/token"
)

// sessionFixture is the commands of one instance, with a clock that is set by hand.
type sessionFixture struct {
	*areatoken.Tokens
	log   eventstore.Store
	clock *atomic.Int64
}

func newSessionFixture(t *testing.T) sessionFixture {
	t.Helper()
	log, err := journal.Open(t.TempDir(), journal.Options{SegmentSize: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	f := sessionFixture{log: log, clock: &atomic.Int64{}}
	f.clock.Store(time.Now().Unix())
	f.Tokens = f.newInstance()
	return f
}

func (f sessionFixture) now() time.Time { return time.Unix(f.clock.Load(), 0) }

func (f sessionFixture) newInstance() *areatoken.Tokens {
	return areatoken.New(f.log, eventstore.NewCodec(nil), token.DefaultPrefixes, f.now)
}

func (f sessionFixture) issueToken(t *testing.T, role grant.Role) areatoken.IssuedToken {
	t.Helper()
	made, err := f.Issue(t.Context(), system, areatoken.TokenRequest{Role: role, Label: "a holder"})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func (f sessionFixture) issueLink(t *testing.T, tokenID string) areatoken.IssuedLink {
	t.Helper()
	made, err := f.IssueLink(t.Context(), system, tokenID, areatoken.LinkLifetime)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func (f sessionFixture) expectSessions(t *testing.T, tokenID string, want int) {
	t.Helper()
	if all, err := f.newInstance().Sessions(t.Context(), tokenID); err != nil || len(all) != want {
		t.Errorf("%d sessions, want %d (%v)", len(all), want, err)
	}
}

// sessionProof makes something that is shown to open a session of a token.
type sessionProof struct {
	make func(t *testing.T, f sessionFixture, tok areatoken.IssuedToken) string
	want bool
}

const isValid, isInvalid = true, false

// sessionProofs are all kinds of them.
var sessionProofs = map[string]sessionProof{
	"the token itself": {func(_ *testing.T, _ sessionFixture, tok areatoken.IssuedToken) string { return tok.Plaintext }, isValid},
	"a link": {func(t *testing.T, f sessionFixture, tok areatoken.IssuedToken) string {
		return f.issueLink(t, tok.Token).Secret
	}, isValid},
	"a link in its last second": {func(t *testing.T, f sessionFixture, tok areatoken.IssuedToken) string {
		made := f.issueLink(t, tok.Token)
		f.clock.Add(int64(areatoken.LinkLifetime/time.Second) - 1)
		return made.Secret
	}, isValid},
	"a link that has expired": {func(t *testing.T, f sessionFixture, tok areatoken.IssuedToken) string {
		made := f.issueLink(t, tok.Token)
		f.clock.Add(int64(areatoken.LinkLifetime / time.Second))
		return made.Secret
	}, isInvalid},
	"a link that was used": {func(t *testing.T, f sessionFixture, tok areatoken.IssuedToken) string {
		made := f.issueLink(t, tok.Token)
		if _, err := f.OpenSession(t.Context(), system, tok.Token, made.Secret); err != nil {
			t.Fatal(err)
		}
		return made.Secret
	}, isInvalid},
	"a link of another token": {func(t *testing.T, f sessionFixture, _ areatoken.IssuedToken) string {
		return f.issueLink(t, f.issueToken(t, grant.RoleOperator).Token).Secret
	}, isInvalid},
	"a link of a token that is revoked since": {func(t *testing.T, f sessionFixture, tok areatoken.IssuedToken) string {
		made := f.issueLink(t, tok.Token)
		if _, _, err := f.Revoke(t.Context(), system, tok.Token); err != nil {
			t.Fatal(err)
		}
		return made.Secret
	}, isInvalid},
	"a token that is revoked": {func(t *testing.T, f sessionFixture, tok areatoken.IssuedToken) string {
		if _, _, err := f.Revoke(t.Context(), system, tok.Token); err != nil {
			t.Fatal(err)
		}
		return tok.Plaintext
	}, isInvalid},
	"the secret of a session": {func(t *testing.T, f sessionFixture, tok areatoken.IssuedToken) string {
		opened, err := f.OpenSession(t.Context(), system, tok.Token, tok.Plaintext)
		if err != nil {
			t.Fatal(err)
		}
		return opened.Secret
	}, isInvalid},
	"nothing": {func(*testing.T, sessionFixture, areatoken.IssuedToken) string { return "" }, isInvalid},
}

func TestWhatOpensASession(t *testing.T) {
	t.Parallel()
	for name, c := range sessionProofs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newSessionFixture(t)
			tok := f.issueToken(t, grant.RoleCustomer)
			proof := c.make(t, f, tok)
			before := countEvents(t, f.log, tok.Token)
			opened, err := f.newInstance().OpenSession(t.Context(), system, tok.Token, proof)
			if c.want == isInvalid {
				if !errors.Is(err, refusal.LinkInvalid) {
					t.Errorf("opened with %v, want that the link is invalid", err)
				}
				if after := countEvents(t, f.log, tok.Token); after != before {
					t.Errorf("a refused attempt has written %d events", after-before)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if kind, ok := token.DefaultPrefixes.KindOf(opened.Secret); !ok || kind != token.Session {
				t.Errorf("the secret is of kind %q", kind)
			}
			if want := f.now().Add(14 * 24 * time.Hour); !opened.Expires.Equal(want) || opened.Role != string(grant.RoleCustomer) {
				t.Errorf("a %s session until %v, want until %v", opened.Role, opened.Expires, want)
			}
		})
	}
}

// countEvents counts the events of the token's stream.
func countEvents(t *testing.T, log eventstore.Store, tokenID string) (n int) {
	t.Helper()
	for _, err := range log.ReadStream(t.Context(), "token-"+tokenID, 0, eventstore.Forward) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

func TestALinkThatManyUseAtOnceOpensOneSession(t *testing.T) {
	t.Parallel()
	f := newSessionFixture(t)
	tok := f.issueToken(t, grant.RoleOperator)
	made := f.issueLink(t, tok.Token)
	var opened, refused atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		instance := f.newInstance()
		wg.Go(func() {
			switch _, err := instance.OpenSession(t.Context(), system, tok.Token, made.Secret); {
			case err == nil:
				opened.Add(1)
			case errors.Is(err, areatoken.ErrLinkInvalid):
				refused.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if opened.Load() != 1 || refused.Load() != 7 {
		t.Errorf("%d opened and %d refused, want 1 and 7", opened.Load(), refused.Load())
	}
	f.expectSessions(t, tok.Token, 1)
}

func TestASessionEndsOnce(t *testing.T) {
	t.Parallel()
	f := newSessionFixture(t)
	tok := f.issueToken(t, grant.RoleOperator)
	opened, err := f.OpenSession(t.Context(), system, tok.Token, tok.Plaintext)
	if err != nil {
		t.Fatal(err)
	}
	f.expectSessions(t, tok.Token, 1)
	other := f.issueToken(t, grant.RoleOperator)
	if _, err := f.CloseSession(t.Context(), system, other.Token, opened.Session); !errors.Is(err, areatoken.ErrUnknownSession) {
		t.Errorf("ended by another token: %v", err)
	}
	if _, err := f.CloseSession(t.Context(), system, tok.Token, opened.Session); err != nil {
		t.Fatal(err)
	}
	f.expectSessions(t, tok.Token, 0)
	if _, err := f.CloseSession(t.Context(), system, tok.Token, opened.Session); !errors.Is(err, areatoken.ErrUnknownSession) {
		t.Errorf("ended twice: %v", err)
	}
}

func TestSessionsEndByThemselvesAndWithTheirToken(t *testing.T) {
	t.Parallel()
	for role, lifetime := range map[grant.Role]time.Duration{
		grant.RoleOperator: 12 * time.Hour, grant.RoleBilling: 12 * time.Hour, grant.RoleAuditor: 12 * time.Hour,
		grant.RoleCustomer: 14 * 24 * time.Hour, grant.RoleAgency: 14 * 24 * time.Hour,
	} {
		f := newSessionFixture(t)
		tok := f.issueToken(t, role)
		if _, err := f.OpenSession(t.Context(), system, tok.Token, tok.Plaintext); err != nil {
			t.Fatal(err)
		}
		f.clock.Add(int64(lifetime/time.Second) - 1)
		f.expectSessions(t, tok.Token, 1)
		f.clock.Add(1)
		f.expectSessions(t, tok.Token, 0)
		if _, err := f.OpenSession(t.Context(), system, tok.Token, tok.Plaintext); err != nil {
			t.Fatal(err)
		}
		if _, _, err := f.Revoke(t.Context(), system, tok.Token); err != nil {
			t.Fatal(err)
		}
		f.expectSessions(t, tok.Token, 0)
	}
}

func TestATokenHasAtMostSoManySessionsAndLinks(t *testing.T) {
	t.Parallel()
	f := newSessionFixture(t)
	tok := f.issueToken(t, grant.RoleCustomer)
	first := f.issueLink(t, tok.Token)
	for n := 1; n < areatoken.MaxSessions; n++ {
		if _, err := f.OpenSession(t.Context(), system, tok.Token, tok.Plaintext); err != nil {
			t.Fatal(fmt.Errorf("session %d: %w", n, err))
		}
	}
	if _, err := f.OpenSession(t.Context(), system, tok.Token, tok.Plaintext); !errors.Is(err, areatoken.ErrTooManySessions) {
		t.Errorf("one session more: %v", err)
	}
	if _, err := f.IssueLink(t.Context(), system, tok.Token, time.Minute); !errors.Is(err, areatoken.ErrTooManySessions) {
		t.Errorf("one link more: %v", err)
	}
	if _, err := f.OpenSession(t.Context(), system, tok.Token, first.Secret); err != nil {
		t.Errorf("a link that has its place: %v", err)
	}
	f.clock.Add(int64(areatoken.SessionLifetime(grant.RoleCustomer) / time.Second))
	if _, err := f.IssueLink(t.Context(), system, tok.Token, time.Minute); err != nil {
		t.Errorf("after all have expired: %v", err)
	}
}

func TestAnInvitationIsATokenThatNobodySees(t *testing.T) {
	t.Parallel()
	f := newSessionFixture(t)
	made, err := f.Invite(t.Context(), system, areatoken.TokenRequest{Role: grant.RoleAuditor, Label: "S. Durand"})
	if err != nil {
		t.Fatal(err)
	}
	f.clock.Add(int64(areatoken.InvitationLifetime/time.Second) - 1)
	opened, err := f.newInstance().OpenSession(t.Context(), system, made.Token, made.Secret)
	if err != nil || opened.Role != string(grant.RoleAuditor) {
		t.Fatalf("%+v, %v", opened.SessionOpened, err)
	}
	if _, _, err := f.Revoke(t.Context(), system, made.Token); err != nil {
		t.Fatal(err)
	}
	f.expectSessions(t, made.Token, 0)
}

func TestAllSessionsAndUnusedLinksEndAtOnce(t *testing.T) {
	t.Parallel()
	f := newSessionFixture(t)
	tok, other := f.issueToken(t, grant.RoleOperator), f.issueToken(t, grant.RoleOperator)
	used, unused, last := f.issueLink(t, tok.Token), f.issueLink(t, tok.Token), f.issueLink(t, tok.Token)
	for _, proof := range []string{tok.Plaintext, used.Secret} {
		if _, err := f.OpenSession(t.Context(), system, tok.Token, proof); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.OpenSession(t.Context(), system, other.Token, other.Plaintext); err != nil {
		t.Fatal(err)
	}
	if ended, _, err := f.CloseAllSessions(t.Context(), system, tok.Token); err != nil || ended != 4 {
		t.Errorf("%d ended (%v), want 2 sessions and 2 links", ended, err)
	}
	f.expectSessions(t, tok.Token, 0)
	f.expectSessions(t, other.Token, 1)
	for name, link := range map[string]areatoken.IssuedLink{"used": used, "unused": unused, "never used": last} {
		if _, err := f.newInstance().OpenSession(t.Context(), system, tok.Token, link.Secret); !errors.Is(err, areatoken.ErrLinkInvalid) {
			t.Errorf("a link that was %s: %v", name, err)
		}
	}
	late := f.issueLink(t, tok.Token)
	f.clock.Add(int64(areatoken.LinkLifetime / time.Second))
	before := countEvents(t, f.log, tok.Token)
	if ended, _, err := f.CloseAllSessions(t.Context(), system, late.Token); err != nil || ended != 0 {
		t.Errorf("%d ended (%v), want none: the link has expired", ended, err)
	}
	if after := countEvents(t, f.log, tok.Token); after != before {
		t.Errorf("%d events were written for nothing", after-before)
	}
}

// In a log of an older format nothing is written that an older program would pass over.
func TestALogOfAnOlderFormatGetsNoSessions(t *testing.T) {
	t.Parallel()
	f := newSessionFixture(t)
	tok := f.issueToken(t, grant.RoleOperator)
	for format, want := range map[int]error{event.SessionsFormat - 1: areatoken.ErrFormatTooLow, event.SessionsFormat: nil} {
		codec := eventstore.NewCodec(nil).WithFormat(func(_ context.Context, asked int) (bool, error) { return asked <= format, nil })
		tokens := areatoken.New(f.log, codec, token.DefaultPrefixes, f.now)
		_, linkErr := tokens.IssueLink(t.Context(), system, tok.Token, time.Minute)
		_, openErr := tokens.OpenSession(t.Context(), system, tok.Token, tok.Plaintext)
		_, inviteErr := tokens.Invite(t.Context(), system, areatoken.TokenRequest{Role: grant.RoleAuditor})
		for name, err := range map[string]error{"a link": linkErr, "a session": openErr, "an invitation": inviteErr} {
			if !errors.Is(err, want) {
				t.Errorf("format %d, %s: %v, want %v", format, name, err, want)
			}
		}
	}
	silent := errors.New("the log does not answer")
	tokens := areatoken.New(f.log, eventstore.NewCodec(nil).WithFormat(func(context.Context, int) (bool, error) { return false, silent }), token.DefaultPrefixes, f.now)
	if _, err := tokens.OpenSession(t.Context(), system, tok.Token, tok.Plaintext); !errors.Is(err, silent) {
		t.Errorf("while the format is unknown: %v, want %v", err, silent)
	}
}

// An invitation is open until its link is used, ends or is revoked with its token. A link for another browser is not an invitation.
func TestAnInvitationIsOpenUntilItIsUsed(t *testing.T) {
	t.Parallel()
	f := newSessionFixture(t)
	invite := func() areatoken.IssuedLink {
		made, err := f.Invite(t.Context(), system, areatoken.TokenRequest{Role: grant.RoleAuditor, Label: "S. Durand"})
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	used, revoked, expired, tok := invite(), invite(), invite(), f.issueToken(t, grant.RoleBilling)
	f.issueLink(t, tok.Token)
	expect := func(what string, isOpen bool, id string, until time.Time) {
		t.Helper()
		got, err := f.newInstance().InvitationUntil(t.Context(), id)
		if err != nil || got.IsZero() == isOpen || isOpen && !got.Equal(until) {
			t.Errorf("%s: open until %v, %v, want open: %v", what, got, err, isOpen)
		}
	}
	for name, made := range map[string]areatoken.IssuedLink{"one": used, "another": revoked, "a third": expired} {
		expect(name, true, made.Token, made.Expires)
	}
	expect("a link for another browser", false, tok.Token, time.Time{})
	expect("an unknown token", false, "unknown", time.Time{})
	if _, err := f.OpenSession(t.Context(), system, used.Token, used.Secret); err != nil {
		t.Fatal(err)
	}
	f.issueLink(t, used.Token)
	if _, _, err := f.Revoke(t.Context(), system, revoked.Token); err != nil {
		t.Fatal(err)
	}
	expect("used", false, used.Token, time.Time{})
	expect("revoked", false, revoked.Token, time.Time{})
	f.clock.Add(int64(areatoken.InvitationLifetime/time.Second) + 1)
	expect("expired", false, expired.Token, time.Time{})
}
