package usage

import (
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"lieudit/schemas/usagefold"
)

// ShardLoad is what an instance has done since it started to count the requests of one shard, whatever the month. One worker at a time
// counts in a stream, so a shard whose Work grows by nearly a second each second has no room left: more shards help then.
type ShardLoad struct {
	Events   int64         // appended
	Requests int64         // counted, and answered with success
	Work     time.Duration // of batches, without the wait for their appends
}

// OwnStreams stands for a shard in Meter.Loads: all periods with a stream of their own.
const OwnStreams = "own"

// load is a ShardLoad while it grows.
type load struct{ events, requests, work atomic.Int64 }

// loads has the load of each shard by its number, and that of OwnStreams.
type loads struct{ byShard sync.Map } // string -> *load

// ofStream returns the load that a stream's batches add to.
func (l *loads) ofStream(name string) *load {
	label := OwnStreams
	if _, shard, ok := usagefold.ParseSharedStreamName(name); ok {
		label = strconv.FormatInt(shard, 10)
	}
	if found, ok := l.byShard.Load(label); ok {
		return found.(*load)
	}
	found, _ := l.byShard.LoadOrStore(label, &load{})
	return found.(*load)
}

// Loads returns what this instance has done, by the number of the shard or OwnStreams.
func (m *Meter) Loads() map[string]ShardLoad {
	all := map[string]ShardLoad{}
	m.loads.byShard.Range(func(label, found any) bool {
		l := found.(*load)
		all[label.(string)] = ShardLoad{Events: l.events.Load(), Requests: l.requests.Load(), Work: time.Duration(l.work.Load())}
		return true
	})
	return all
}

// Totals returns how many events this instance has appended to count, and how many requests it has counted, since it started.
func (m *Meter) Totals() (events, requests int64) {
	for _, l := range m.Loads() {
		events, requests = events+l.Events, requests+l.Requests
	}
	return events, requests
}
