package account_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"lieudit/commands"
	"lieudit/commands/account"
	"lieudit/eventstore"
	"lieudit/eventstore/memory"
	"lieudit/schemas/event"
	"lieudit/schemas/plan"
	"lieudit/schemas/refusal"
	"lieudit/schemas/token"
)

var operator = commands.Metadata{Actor: "token:operator"}

// issuing is an account on a log whose clock the test sets, and a handler of it. Others are other instances.
type issuing struct {
	t     *testing.T
	log   eventstore.Store
	codec *eventstore.Codec
	vault *oneKeyVault
	now   time.Time
	*account.Accounts
}

func startIssuing(t *testing.T) *issuing {
	t.Helper()
	s := &issuing{t: t, vault: &oneKeyVault{}, now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}
	s.log, s.codec = memory.New(s.clock), eventstore.NewCodec(s.vault)
	s.Accounts = s.instance()
	if _, err := s.OpenAccount(t.Context(), operator, account.OpenRequest{ID: "a", Name: "A", Plan: plan.Growth}); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *issuing) clock() time.Time { return s.now }

func (s *issuing) instance() *account.Accounts {
	return account.New(s.log, s.codec, token.DefaultPrefixes, s.clock)
}

func (s *issuing) issue(meta commands.Metadata, req account.KeyRequest) (account.IssuedKey, error) {
	s.t.Helper()
	return s.instance().IssueKey(s.t.Context(), "a", meta, req)
}

func (s *issuing) mustIssue(meta commands.Metadata, req account.KeyRequest) account.IssuedKey {
	s.t.Helper()
	k, err := s.issue(meta, req)
	if err != nil {
		s.t.Fatal(err)
	}
	return k
}

// eventTypes are the wire names of the account's events after its opening.
func (s *issuing) eventTypes() (names []string) {
	s.t.Helper()
	for r, err := range s.log.ReadStream(s.t.Context(), "account-a", 1, eventstore.Forward) {
		if err != nil {
			s.t.Fatal(err)
		}
		names = append(names, r.Type)
	}
	return names
}

func TestARequestThatIsSentAgainGetsTheSameKey(t *testing.T) {
	t.Parallel()
	for _, req := range []account.KeyRequest{
		{Kind: token.Secret, Label: "server", IdempotencyKey: "one"},
		{Kind: token.Publishable, Label: "page", Origins: []string{"HTTPS://a.fr"}, IdempotencyKey: "one"},
	} {
		s := startIssuing(t)
		first := s.mustIssue(operator, req)
		s.now = s.now.Add(23 * time.Hour)
		again := s.mustIssue(operator, req)
		if first.Plaintext != again.Plaintext || first.ID != again.ID || !first.IssuedAt.Equal(again.IssuedAt) || !slices.Equal(first.Origins, again.Origins) || first.Label != again.Label {
			t.Errorf("got %+v, then %+v", first, again)
		}
		if kind, ok := token.DefaultPrefixes.KindOf(first.Plaintext); !ok || kind != req.Kind {
			t.Errorf("%s is a %s key", first.Plaintext, kind)
		}
		if names := s.eventTypes(); len(names) != 1 {
			t.Errorf("%v on the log, want one event", names)
		}
	}
}

func TestTwoInstancesAtOnceIssueOneKey(t *testing.T) {
	t.Parallel()
	s := startIssuing(t)
	var wg sync.WaitGroup
	var tokens [8]string
	for i := range tokens {
		a := s.instance()
		wg.Go(func() {
			k, err := a.IssueKey(t.Context(), "a", operator, account.KeyRequest{Kind: token.Secret, Label: "l", IdempotencyKey: "one"})
			if err != nil {
				t.Error(err)
			}
			tokens[i] = k.Plaintext
		})
	}
	wg.Wait()
	if all := slices.Compact(tokens[:]); len(all) != 1 {
		t.Errorf("got the tokens %v", all)
	}
	if names := s.eventTypes(); len(names) != 1 {
		t.Errorf("%v on the log, want one event", names)
	}
}

func TestWhatIsAnotherRequestGetsAnotherKeyOrNone(t *testing.T) {
	t.Parallel()
	base := account.KeyRequest{Kind: token.Publishable, Label: "l", Origins: []string{"https://a.fr"}, IdempotencyKey: "one"}
	with := func(change func(*account.KeyRequest)) account.KeyRequest {
		req := base
		change(&req)
		return req
	}
	for rule, c := range map[string]struct {
		actor string
		req   account.KeyRequest
		want  error
	}{
		"another label":              {"token:operator", with(func(r *account.KeyRequest) { r.Label = "m" }), refusal.IdempotencyMismatch},
		"other origins":              {"token:operator", with(func(r *account.KeyRequest) { r.Origins = []string{"https://b.fr"} }), refusal.IdempotencyMismatch},
		"more origins":               {"token:operator", with(func(r *account.KeyRequest) { r.Origins = []string{"https://a.fr", "https://b.fr"} }), refusal.IdempotencyMismatch},
		"the other kind":             {"token:operator", with(func(r *account.KeyRequest) { r.Kind, r.Origins = token.Secret, nil }), refusal.IdempotencyMismatch},
		"another idempotency key":    {"token:operator", with(func(r *account.KeyRequest) { r.IdempotencyKey = "two" }), nil},
		"without an idempotency key": {"token:operator", with(func(r *account.KeyRequest) { r.IdempotencyKey = "" }), nil},
		"another actor":              {"token:other", base, nil},
	} {
		s := startIssuing(t)
		first := s.mustIssue(operator, base)
		got, err := s.issue(commands.Metadata{Actor: c.actor}, c.req)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", rule, err, c.want)
		}
		if err == nil && (got.ID == first.ID || got.Plaintext == first.Plaintext) {
			t.Errorf("%s: got the same key", rule)
		}
		if names := s.eventTypes(); (len(names) == 2) != (c.want == nil) {
			t.Errorf("%s: %v on the log", rule, names)
		}
	}
}

func TestARepeatedRequestIsForgottenAfterADayAndWithItsKey(t *testing.T) {
	t.Parallel()
	s := startIssuing(t)
	req := account.KeyRequest{Kind: token.Secret, Label: "l", IdempotencyKey: "one"}
	var tokens []string
	for range 3 { // each day a key of its own, also of another request
		tokens = append(tokens, s.mustIssue(operator, req).Plaintext)
		s.now = s.now.Add(24 * time.Hour)
		req.Label += "l"
	}
	last := s.mustIssue(operator, req)
	if slices.Sort(tokens); len(slices.Compact(append(tokens, last.Plaintext))) != 4 {
		t.Errorf("got %v, then %s", tokens, last.Plaintext)
	}
	if _, _, err := s.RevokeKey(t.Context(), "a", operator, last.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := s.issue(operator, req); !errors.Is(err, refusal.KeyRevoked) {
		t.Errorf("once it is revoked: got %v, want KeyRevoked", err)
	}
}

func TestWithoutTheVaultNothingIsIssuedAndARepeatedRequestIsAnswered(t *testing.T) {
	t.Parallel()
	s := startIssuing(t)
	req := account.KeyRequest{Kind: token.Secret, Label: "l", IdempotencyKey: "one"}
	s.vault.away = errors.New("away")
	if _, err := s.issue(operator, req); !errors.Is(err, s.vault.away) {
		t.Errorf("got %v", err)
	}
	if names := s.eventTypes(); len(names) != 0 {
		t.Errorf("%v on the log", names)
	}
	s.vault.away = nil
	first := s.mustIssue(operator, req)
	if again := s.mustIssue(operator, req); again.Plaintext != first.Plaintext {
		t.Error("the vault is back, and the token is another one")
	}
	s.vault.away = eventstore.ErrDestroyed
	if _, err := s.closeWithoutReason(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.issue(operator, req); !errors.Is(err, refusal.AccountClosed) {
		t.Errorf("of an erased account: got %v, want AccountClosed", err)
	}
	if _, err := s.instance().IssueKey(t.Context(), "nobody", operator, req); !errors.Is(err, account.ErrUnknownAccount) {
		t.Errorf("of an unknown account: got %v", err)
	}
}

// closeWithoutReason closes the account, which needs no vault without a reason.
func (s *issuing) closeWithoutReason() (eventstore.Position, error) {
	at, _, err := s.CloseAccount(s.t.Context(), "a", operator)
	return at, err
}

func TestAKeyTakesThePlaceOfAnother(t *testing.T) {
	t.Parallel()
	s := startIssuing(t)
	old := s.mustIssue(operator, account.KeyRequest{Kind: token.Secret, Label: "l"})
	page := s.mustIssue(operator, account.KeyRequest{Kind: token.Publishable, Label: "p", Origins: []string{"https://a.fr"}})
	rotate := func(replaces, idempotencyKey string) (account.IssuedKey, error) {
		return s.issue(operator, account.KeyRequest{Kind: token.Secret, Label: "l", Replaces: replaces, IdempotencyKey: idempotencyKey})
	}
	for replaces, want := range map[string]error{"nothing": account.ErrReplacesUnknownKey, page.ID: account.ErrReplacesOtherKind} {
		if _, err := rotate(replaces, ""); !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
	}
	before := len(s.eventTypes())
	made, err := rotate(old.ID, "r")
	if err != nil || made.Replaces != old.ID {
		t.Fatalf("got %+v, %v", made, err)
	}
	if again, err := rotate(old.ID, "r"); err != nil || again.Plaintext != made.Plaintext {
		t.Errorf("sent again: %v", err)
	}
	if names := s.eventTypes()[before:]; !slices.Equal(names, []string{event.SecretKeyIssued{}.EventType(), event.KeyRotationStarted{}.EventType()}) {
		t.Errorf("got the events %v", names)
	}
	if _, err := rotate(old.ID, "other"); !errors.Is(err, refusal.KeyReplaced) {
		t.Errorf("a second one at the same time: %v", err)
	}
	if _, _, err := s.RevokeKey(t.Context(), "a", operator, made.ID); err != nil {
		t.Fatal(err)
	}
	second, err := rotate(old.ID, "other")
	if err != nil {
		t.Errorf("after the new key was revoked: %v", err)
	}
	if _, _, err := s.RevokeKey(t.Context(), "a", operator, old.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := rotate(old.ID, "late"); !errors.Is(err, refusal.KeyRevoked) {
		t.Errorf("of a revoked key: %v", err)
	}
	if _, err := rotate(second.ID, "next"); err != nil {
		t.Errorf("the next rotation: %v", err)
	}
}

// Programs of the time before would stop at the event: the key is not issued either, so that nobody takes it for a rotation.
func TestARotationWaitsForTheFormatOfTheLog(t *testing.T) {
	t.Parallel()
	s := startIssuing(t)
	old := s.mustIssue(operator, account.KeyRequest{Kind: token.Secret, Label: "l"})
	s.codec = s.codec.WithFormat(func(_ context.Context, format int) (bool, error) { return format < event.SessionsFormat, nil })
	before := len(s.eventTypes())
	if _, err := s.issue(operator, account.KeyRequest{Kind: token.Secret, Label: "l", Replaces: old.ID}); !errors.Is(err, refusal.UpgradeUnfinished) {
		t.Errorf("got %v, want UpgradeUnfinished", err)
	}
	if names := s.eventTypes(); len(names) != before {
		t.Errorf("%v on the log", names)
	}
	s.mustIssue(operator, account.KeyRequest{Kind: token.Secret, Label: "l", IdempotencyKey: "one"})
}
