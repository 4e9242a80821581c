package areatoken

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"lieudit/commands"
	"lieudit/eventstore"
	"lieudit/schemas/event"
	"lieudit/schemas/grant"
	"lieudit/schemas/refusal"
	"lieudit/schemas/token"
)

// This file opens sessions. A session is a customer-area token in a browser: it may do what the token may, and ends with it.
// It is opened with the token itself, or with a link, which opens one session and no second one: both are on the token's
// stream, so the expected revision of the append decides between two who use a link at the same time.
//
//	Tokens.IssueLink ──> event.SessionLinkIssued ──┐
//	Tokens.Invite ──> event.TokenIssued, the same ──┴──> Tokens.OpenSession ──> event.SessionOpened ──> Tokens.CloseSession, CloseAllSessions
//
// Whoever is invited gets a token of their own, whose text nobody ever sees: it is listed and revoked like any other.

const (
	// LinkLifetime is how long a link is valid that the holder of a token makes for another browser.
	LinkLifetime = 15 * time.Minute
	// InvitationLifetime is how long the link of an invitation is valid.
	InvitationLifetime = 7 * 24 * time.Hour
	// MaxSessions is how many sessions and links of one token are valid at the same time.
	MaxSessions = 100
)

// SessionLifetime is how long a session of a role lasts. Using it makes it no longer.
func SessionLifetime(role grant.Role) time.Duration {
	switch role {
	case grant.RoleCustomer, grant.RoleAgency:
		return 14 * 24 * time.Hour
	default:
		return 12 * time.Hour
	}
}

var (
	// ErrLinkInvalid: the link is unknown, was used or has expired, or its token was revoked.
	ErrLinkInvalid = fmt.Errorf("link is not valid: %w", refusal.LinkInvalid)
	// ErrFormatTooLow: the log's format is below event.SessionsFormat, since programs that know no sessions may run on it.
	ErrFormatTooLow = fmt.Errorf("the log's format has no sessions: %w", refusal.UpgradeUnfinished)
	// ErrUnknownSession: the token has no such session.
	ErrUnknownSession = fmt.Errorf("unknown session: %w", refusal.NotFound)
	// ErrTooManySessions: MaxSessions sessions and links of the token are valid.
	ErrTooManySessions = fmt.Errorf("too many sessions: %w", refusal.TooManySessions)
)

// link is a link that was not used.
type link struct {
	hash    []byte
	expires time.Time
}

// Session is a session of a token that was not ended.
type Session struct {
	ID      string
	Hash    []byte
	Link    string // the id of the link that it was opened with; empty if the token itself was shown
	Opened  time.Time
	Expires time.Time
}

// evolveSessions changes the links and sessions of a state by one record. What has expired by then is dropped, so that a token
// that is used for years does not hold all of its sessions.
func (s *State) evolveSessions(rec commands.Record) {
	switch e := rec.Event.(type) {
	case event.SessionLinkIssued:
		s.dropExpired(rec.At)
		put(&s.links, e.Link, link{e.Hash, e.Expires})
	case event.SessionOpened:
		s.dropExpired(rec.At)
		delete(s.links, e.Link)
		put(&s.sessions, e.Session, Session{ID: e.Session, Hash: e.Hash, Link: e.Link, Opened: rec.At, Expires: e.Expires})
	case event.SessionClosed:
		delete(s.sessions, e.Session)
	case event.SessionLinkEnded:
		delete(s.links, e.Link)
	}
}

func put[V any](m *map[string]V, id string, v V) {
	if *m == nil {
		*m = map[string]V{}
	}
	(*m)[id] = v
}

func (s *State) dropExpired(now time.Time) {
	maps.DeleteFunc(s.links, func(_ string, l link) bool { return !now.Before(l.expires) })
	maps.DeleteFunc(s.sessions, func(_ string, o Session) bool { return !now.Before(o.Expires) })
}

// countValid is how many links and sessions are valid at an instant.
func (s *State) countValid(now time.Time) (n int) {
	for _, l := range s.links {
		if now.Before(l.expires) {
			n++
		}
	}
	for _, o := range s.sessions {
		if now.Before(o.Expires) {
			n++
		}
	}
	return n
}

// isValid reports whether the token was issued and not revoked.
func (s *State) isValid() bool { return s.Issued.Token != "" && s.RevokedAt.IsZero() }

// requireFormat fails with ErrFormatTooLow while the log may hold no sessions.
func (t *Tokens) requireFormat(ctx context.Context) error {
	hasFormat, err := t.codec.HasFormat(ctx, event.SessionsFormat)
	if err == nil && !hasFormat {
		err = ErrFormatTooLow
	}
	return err
}

// IssuedLink is a new link. Secret is shown this once: the log keeps its hash. Position is the place on the log to wait for
// before the key ring knows the link.
type IssuedLink struct {
	event.SessionLinkIssued
	Secret   string
	Position eventstore.Position
}

// IssueLink makes a link with which one session of the token can be opened.
func (t *Tokens) IssueLink(ctx context.Context, meta commands.Metadata, tokenID string, lifetime time.Duration) (IssuedLink, error) {
	made := t.newLink(lifetime)
	if err := t.requireFormat(ctx); err != nil {
		return made, err
	}
	var err error
	made.Position, err = t.handler.Handle(ctx, tokenID, meta, func(s *State) commands.Result {
		switch {
		case !s.isValid():
			return commands.Refuse(ErrUnknownToken)
		case s.countValid(t.now()) >= MaxSessions:
			return commands.Refuse(ErrTooManySessions)
		}
		made.Token, made.Role, made.Account, made.TokenHash = s.Issued.Token, s.Issued.Role, s.Issued.Account, s.Issued.Hash
		return commands.Append(made.SessionLinkIssued)
	})
	return made, err
}

// newLink makes a link of no token yet.
func (t *Tokens) newLink(lifetime time.Duration) IssuedLink {
	secret := t.prefixes.New(token.Link)
	hash := token.HashOf(secret)
	return IssuedLink{Secret: secret, SessionLinkIssued: event.SessionLinkIssued{
		Link: uuid.Must(uuid.NewV7()).String(), Hash: hash[:], Expires: t.now().Add(lifetime).UTC().Truncate(time.Microsecond),
	}}
}

// Invite makes a token for somebody who is invited, and the link with which they come in.
func (t *Tokens) Invite(ctx context.Context, meta commands.Metadata, req TokenRequest) (IssuedLink, error) {
	made := t.newLink(InvitationLifetime)
	if err := t.requireFormat(ctx); err != nil {
		return made, err
	}
	issued := t.newToken(uuid.Must(uuid.NewV7()).String(), t.prefixes.New(token.Area), req)
	made.Token, made.Role, made.Account, made.TokenHash = issued.Token, issued.Role, issued.Account, issued.Hash
	var err error
	made.Position, err = t.handler.Handle(ctx, issued.Token, meta, func(*State) commands.Result {
		return commands.Append(issued, made.SessionLinkIssued)
	})
	return made, err
}

// OpenedSession is a new session. Secret is the value of its cookie, which the log does not hold.
type OpenedSession struct {
	event.SessionOpened
	Secret   string
	Position eventstore.Position
}

// OpenSession opens a session of a token with the text of the token or of a link of it. It fails with ErrLinkInvalid, and then
// writes nothing.
func (t *Tokens) OpenSession(ctx context.Context, meta commands.Metadata, tokenID, proof string) (OpenedSession, error) {
	if err := t.requireFormat(ctx); err != nil {
		return OpenedSession{}, err
	}
	shown := token.HashOf(proof)
	secret := t.prefixes.New(token.Session)
	hash := token.HashOf(secret)
	made := OpenedSession{Secret: secret, SessionOpened: event.SessionOpened{Session: uuid.Must(uuid.NewV7()).String(), Hash: hash[:]}}
	var err error
	made.Position, err = t.handler.Handle(ctx, tokenID, meta, func(s *State) commands.Result {
		now := t.now()
		usedLink, ok := s.proves(shown[:], now)
		switch {
		case !ok || !s.isValid():
			return commands.Refuse(ErrLinkInvalid)
		case usedLink == "" && s.countValid(now) >= MaxSessions: // a link has its place already
			return commands.Refuse(ErrTooManySessions)
		}
		made.Token, made.Role, made.Account, made.TokenHash, made.Link = s.Issued.Token, s.Issued.Role, s.Issued.Account, s.Issued.Hash, usedLink
		made.Expires = now.Add(SessionLifetime(grant.Role(s.Issued.Role))).UTC().Truncate(time.Microsecond)
		return commands.Append(made.SessionOpened)
	})
	return made, err
}

// proves reports whether a hash is that of the token, or of a link of it that is valid now, which is then named.
func (s *State) proves(hash []byte, now time.Time) (usedLink string, ok bool) {
	if bytes.Equal(s.Issued.Hash, hash) {
		return "", true
	}
	for id, l := range s.links {
		if bytes.Equal(l.hash, hash) && now.Before(l.expires) {
			return id, true
		}
	}
	return "", false
}

// CloseSession ends a session of a token. One that has ended or expired is unknown.
func (t *Tokens) CloseSession(ctx context.Context, meta commands.Metadata, tokenID, sessionID string) (eventstore.Position, error) {
	return t.handler.Handle(ctx, tokenID, meta, func(s *State) commands.Result {
		o, ok := s.sessions[sessionID]
		if !ok || !t.now().Before(o.Expires) {
			return commands.Refuse(ErrUnknownSession)
		}
		return commands.Append(s.closing(o))
	})
}

// closing is the event that ends a session.
func (s *State) closing(o Session) event.SessionClosed {
	return event.SessionClosed{Token: s.Issued.Token, Role: s.Issued.Role, Account: s.Issued.Account, Session: o.ID, Hash: o.Hash}
}

// CloseAllSessions ends all sessions of a token, and the links that were not used: somebody else may have made one. It returns how
// many have ended.
func (t *Tokens) CloseAllSessions(ctx context.Context, meta commands.Metadata, tokenID string) (ended int, at eventstore.Position, err error) {
	at, err = t.handler.Handle(ctx, tokenID, meta, func(s *State) commands.Result {
		ends := s.endings(t.now())
		ended = len(ends)
		return commands.Append(ends...)
	})
	return ended, at, err
}

// endings are the events that end all sessions and links that are valid at an instant.
func (s *State) endings(now time.Time) (ends []event.Event) {
	for _, id := range slices.Sorted(maps.Keys(s.sessions)) {
		if o := s.sessions[id]; now.Before(o.Expires) {
			ends = append(ends, s.closing(o))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(s.links)) {
		if l := s.links[id]; now.Before(l.expires) {
			ends = append(ends, event.SessionLinkEnded{Token: s.Issued.Token, Role: s.Issued.Role, Account: s.Issued.Account, Link: id, Hash: l.hash})
		}
	}
	return ends
}

// Sessions returns the sessions of a token that are valid now, the latest first.
func (t *Tokens) Sessions(ctx context.Context, tokenID string) (all []Session, err error) {
	now := t.now()
	err = t.handler.View(ctx, tokenID, func(s *State) {
		for _, o := range s.sessions {
			if s.isValid() && now.Before(o.Expires) {
				all = append(all, o)
			}
		}
	})
	slices.SortFunc(all, func(a, b Session) int { return b.Opened.Compare(a.Opened) })
	return all, err
}

// InvitationUntil returns until when the link works with which a token was made by Invite. It is zero if the token was made otherwise or
// revoked, and if its link was used or has expired.
func (t *Tokens) InvitationUntil(ctx context.Context, tokenID string) (until time.Time, err error) {
	now := t.now()
	err = t.handler.View(ctx, tokenID, func(s *State) {
		for _, l := range s.links { // a link for another browser ends sooner
			if s.isValid() && now.Before(l.expires) && s.IssuedAt.Add(InvitationLifetime-LinkLifetime).Before(l.expires) {
				until = l.expires
			}
		}
	})
	return until, err
}
