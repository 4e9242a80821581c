package journal

import (
	"crypto/sha256"
	"hash/maphash"
	"sync/atomic"
)

// streamKey stands for a stream's name wherever one entry a stream is kept: the first half of its SHA-256, which
// no two names share.
type streamKey [16]byte

func keyOf(stream string) streamKey {
	sum := sha256.Sum256([]byte(stream))
	return streamKey(sum[:16])
}

// keys spares the streams that are written to again and again their SHA-256.
type keys struct {
	seed  maphash.Seed
	known [4096]atomic.Pointer[knownKey]
}

type knownKey struct {
	stream string
	key    streamKey
}

func (k *keys) of(stream string) streamKey {
	p := &k.known[maphash.String(k.seed, stream)%uint64(len(k.known))]
	if e := p.Load(); e != nil && e.stream == stream {
		return e.key
	}
	e := &knownKey{stream, keyOf(stream)}
	p.Store(e)
	return e.key
}
