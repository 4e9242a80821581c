package eventstore_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"lieudit/eventstore"
	"lieudit/schemas/event"
	"lieudit/schemas/plan"
)

// lowFormat is the log of a program without sealed labels, names and reasons.
func lowFormat(_ context.Context, format int) (bool, error) {
	return format < event.SealedTextFormat, nil
}

var (
	issuedKey  = event.SecretKeyIssued{Key: "k", Label: "Zoé's laptop", Hash: make([]byte, 32), Hint: "h"}
	zoesReason = eventstore.Metadata{Actor: "token:1", Reason: "Zoé has left"}
)

// encodeOne encodes an event with a reason.
func encodeOne(t *testing.T, c *eventstore.Codec, stream string, e event.Event) eventstore.RecordedEvent {
	t.Helper()
	batch, err := c.Encode(t.Context(), stream, uuid.New(), zoesReason, []event.Event{e})
	if err != nil {
		t.Fatal(err)
	}
	return newRecordedEvent(stream, batch[0])
}

// readTexts decodes an event, and returns its label and its reason.
func readTexts(t *testing.T, c *eventstore.Codec, r eventstore.RecordedEvent) (label, reason string) {
	t.Helper()
	e, err := c.Decode(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	m, err := c.DecodeMetadata(t.Context(), r, e)
	if err != nil || m.SealedReason != "" {
		t.Fatal(m, err)
	}
	switch e := e.(type) {
	case event.SecretKeyIssued:
		return string(e.Label), m.Reason
	case event.TokenIssued:
		return string(e.Label), m.Reason
	}
	return "", m.Reason
}

func TestLabelsAndReasonsAreSealedForTheAccountThatTheyAreAbout(t *testing.T) {
	t.Parallel()
	ofAccount := event.TokenIssued{Token: "t", Role: "customer", Account: "a", Label: issuedKey.Label, Hash: issuedKey.Hash}
	ofNobody := ofAccount
	ofNobody.Account = ""
	for what, c := range map[string]struct {
		stream   string
		e        event.Event
		wantType string
		isSealed bool
	}{
		"a key":                 {"account-a", issuedKey, "account.secret-key-issued.v2", true},
		"a token of an account": {"token-t", ofAccount, "token.issued.v2", true},
		"a token of nobody":     {"token-t", ofNobody, "token.issued.v1", false},
		"a correction of usage": {"usage-a-2026-11-01", event.UsageAdjusted{Account: "a", Day: plan.Date{Year: 2026, Month: 11, Day: 1}}, "usage.adjusted.v1", true},
		"the log as a whole":    {"deployment-log", event.FormatRaised{Format: 3}, "deployment.format-raised.v1", false},
	} {
		codec, vault := newTestCodec()
		r := encodeOne(t, codec, c.stream, c.e)
		if written := string(r.Data) + string(r.Metadata); strings.Contains(written, "Zoé") == c.isSealed || r.Type != c.wantType {
			t.Errorf("%s: written as %s %s", what, r.Type, written)
		}
		if _, err := eventstore.DecodeStrict(r); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		label, reason := readTexts(t, codec, r)
		if label != "" && label != "Zoé's laptop" || reason != zoesReason.Reason {
			t.Errorf("%s: read as %q, %q", what, label, reason)
		}
		if err := vault.DestroyKey(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		if label, reason := readTexts(t, codec, r); c.isSealed && label+reason != "" || !c.isSealed && reason == "" {
			t.Errorf("%s, erased: read as %q, %q", what, label, reason)
		}
	}
}

func TestALogOfALowerFormatGetsWhatItsProgramsRead(t *testing.T) {
	t.Parallel()
	codec, vault := newTestCodec()
	r := encodeOne(t, codec.WithFormat(lowFormat), "account-a", issuedKey)
	if r.Type != "account.secret-key-issued.v1" || !strings.Contains(string(r.Data), `"label":"Zoé's laptop"`) || !strings.Contains(string(r.Metadata), `"reason":"Zoé has left"`) {
		t.Errorf("written as %s %s %s", r.Type, r.Data, r.Metadata)
	}
	if _, err := eventstore.DecodeStrict(r); err != nil {
		t.Error(err)
	}
	if label, reason := readTexts(t, codec, r); label != "Zoé's laptop" || reason != "Zoé has left" {
		t.Errorf("read as %q, %q", label, reason)
	}
	if err := vault.DestroyKey(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if label, reason := readTexts(t, codec, r); label+reason != "" {
		t.Errorf("the account is erased, and the log still in clear: read as %q, %q", label, reason)
	}
	away := errors.New("away")
	if _, err := codec.WithFormat(func(context.Context, int) (bool, error) { return false, away }).Encode(t.Context(), "usage-a", uuid.New(), eventstore.Metadata{}, []event.Event{event.UsageCapSet{}}); err != nil {
		t.Errorf("an append that no format changes asked for the format: %v", err)
	}
	if _, err := codec.WithFormat(func(context.Context, int) (bool, error) { return false, away }).Encode(t.Context(), "account-a", uuid.New(), zoesReason, []event.Event{issuedKey}); !errors.Is(err, away) {
		t.Errorf("the format is not known: got %v", err)
	}
}

func TestTheReasonOfAnEventAboutAnErasedAccountIsLeftOut(t *testing.T) {
	t.Parallel()
	codec, vault := newTestCodec()
	if err := vault.DestroyKey(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	r := encodeOne(t, codec, "account-a", event.KeyRevoked{Key: "k", Hash: make([]byte, 32)})
	if m, err := r.DecodeMetadata(); err != nil || m.Reason != "" || m.SealedReason != "" || m.Actor != zoesReason.Actor {
		t.Errorf("got %+v, %v", m, err)
	}
}

// stuckVault never answers.
type stuckVault struct{ eventstore.Vault }

func (stuckVault) Key(ctx context.Context, _ string, _ bool) ([]byte, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestAReasonIsLeftOutWhereTheVaultDoesNotAnswerInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		sealed, ok, err := eventstore.NewCodec(stuckVault{}).SealReasonWithin(t.Context(), time.Second, "account-a", event.KeyRevoked{}, zoesReason)
		if ok || err != nil || sealed.Reason != "" || sealed.SealedReason != "" || sealed.Actor != zoesReason.Actor || time.Since(began) != time.Second {
			t.Errorf("after %s: got %+v, %v, %v", time.Since(began), sealed, ok, err)
		}
	})
	codec, _ := newTestCodec()
	sealed, ok, err := codec.SealReasonWithin(t.Context(), time.Minute, "account-a", event.KeyRevoked{}, zoesReason)
	if !ok || err != nil || sealed.Reason != "" || !strings.HasPrefix(string(sealed.SealedReason), "sealed.v1:") {
		t.Errorf("got %+v, %v, %v", sealed, ok, err)
	}
	if sealed, ok, err = codec.WithFormat(lowFormat).SealReasonWithin(t.Context(), time.Minute, "account-a", event.KeyRevoked{}, zoesReason); sealed != zoesReason || !ok || err != nil {
		t.Errorf("a lower format: got %+v, %v, %v", sealed, ok, err)
	}
}
