package keyring

import (
	"container/heap"
	"encoding/binary"
	"time"

	"lieudit/schemas/grant"
	"lieudit/schemas/token"
)

// A pass is a link or a session of a customer-area token. It is a row of the table of keys, of the kind areaLink or areaSession,
// and gives what its token gives at that moment: a token that is revoked or stopped, or whose account is closed, takes its passes
// with it. Behind its id, the text of the row holds the token's hash and the instant at which the pass expires. Passes that have
// expired by the time of a later event leave the table.
type pass struct {
	token   token.Hash
	id      string
	expires time.Time
	kind    credentialKind
}

const instantLen = 8 // bytes of an instant in Unix microseconds

// text is the pass as a row holds it.
func (p pass) text() string {
	b := append([]byte(p.id), p.token[:]...)
	return string(binary.LittleEndian.AppendUint64(b, uint64(p.expires.UnixMicro())))
}

// pass reads the row of a pass. A row of another length, which only a damaged snapshot has, is a pass of no token.
func (f foundKey) pass() pass {
	p := pass{id: f.id(), kind: f.kind}
	if rest := f.text[f.idLen:]; len(rest) == len(p.token)+instantLen {
		copy(p.token[:], rest)
		p.expires = time.UnixMicro(int64(binary.LittleEndian.Uint64([]byte(rest[len(p.token):])))).UTC()
	}
	return p
}

func (k credentialKind) isPass() bool { return k == areaLink || k == areaSession }

// putPass adds a pass, and drops those that have expired by now, the time of the event that made it.
func (s *state) putPass(p pass, hash []byte, now time.Time) error {
	for len(s.expiries) > 0 && !s.expiries[0].at.After(now) {
		s.dropKey(heap.Pop(&s.expiries).(expiry).hash)
	}
	k := key{hash: token.Hash(hash), idLen: uint16(len(p.id)), kind: p.kind}
	heap.Push(&s.expiries, expiry{p.expires, k.hash})
	return s.putKey(k, p.text(), nil)
}

// findPass finds the pass of a kind with a hash, if it has not expired.
func (s *state) findPass(hash token.Hash, kind credentialKind, now time.Time) (pass, bool) {
	k, ok := s.findKey(&hash)
	if !ok || k.kind != kind {
		return pass{}, false
	}
	p := k.pass()
	return p, now.Before(p.expires)
}

// FindSession returns what the token of a session gives. It is false for a session that is unknown, ended or expired, and where
// FindToken is false for its token.
func (r *Ring) FindSession(hash token.Hash, now time.Time) (grant.TokenGrant, bool) {
	p, ok := r.state.Load().findPass(hash, areaSession, now)
	if !ok {
		return grant.TokenGrant{}, false
	}
	given, ok := r.FindToken(p.token)
	given.Session = p.id
	return given, ok
}

// FindLink returns what the token of a link gives. It is false for a link that is unknown or expired, and where FindToken is false
// for its token. A link that was used is found until it expires: the token's stream knows that it opens no second session.
func (r *Ring) FindLink(hash token.Hash, now time.Time) (grant.TokenGrant, bool) {
	p, ok := r.state.Load().findPass(hash, areaLink, now)
	if !ok {
		return grant.TokenGrant{}, false
	}
	return r.FindToken(p.token)
}

// expiry is when a pass expires.
type expiry struct {
	at   time.Time
	hash token.Hash
}

// expiryHeap has the pass that expires next at its root. A pass that was dropped before stays in it until then.
type expiryHeap []expiry

func (h expiryHeap) Len() int           { return len(h) }
func (h expiryHeap) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h expiryHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *expiryHeap) Push(x any)        { *h = append(*h, x.(expiry)) }

func (h *expiryHeap) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}
