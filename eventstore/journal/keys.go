package journal

import (
	"crypto/sha256"
	"hash/maphash"
	"sync/atomic"
)

// streamKey stands for a stream's name wherever one entry a stream is kept: the first half of its SHA-256, which
// no two names share.
type streamKey [16]byte

func newStreamKey(stream string) streamKey {
	sum := sha256.Sum256([]byte(stream))
	return streamKey(sum[:16])
}

// streamKeyCache spares the streams that are written to again and again their SHA-256.
type streamKeyCache struct {
	seed    maphash.Seed
	entries [4096]atomic.Pointer[cachedStreamKey]
}

type cachedStreamKey struct {
	stream string
	key    streamKey
}

func (k *streamKeyCache) keyFor(stream string) streamKey {
	p := &k.entries[maphash.String(k.seed, stream)%uint64(len(k.entries))]
	if e := p.Load(); e != nil && e.stream == stream {
		return e.key
	}
	e := &cachedStreamKey{stream, newStreamKey(stream)}
	p.Store(e)
	return e.key
}
