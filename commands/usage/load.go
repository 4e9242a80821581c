package usage

import (
	"sync"
	"sync/atomic"
	"time"

	"lieudit/schemas/usagefold"
)

// Shard is a shared stream. The zero Shard stands for all streams that have one period each.
type Shard struct {
	Month  string // in which its periods begin
	Number int64
}

// ShardLoad is what an instance has done to count requests in a shard since it started. One worker at a time counts in a stream, so a shared stream
// whose Work grows by nearly a second each second can take no more: more shards help then.
type ShardLoad struct {
	Events   int64         // appended
	Requests int64         // counted, and answered with success
	Work     time.Duration // time spent on batches, without the wait for the log
}

// load is a ShardLoad while it grows.
type load struct{ events, requests, work atomic.Int64 }

// loads has the load of each shard.
type loads struct{ byShard sync.Map } // Shard -> *load

// ofStream returns the load that a stream's batches add to.
func (l *loads) ofStream(name string) *load {
	var shard Shard
	if month, number, ok := usagefold.ParseSharedStreamName(name); ok {
		shard = Shard{month, number}
	}
	if found, ok := l.byShard.Load(shard); ok {
		return found.(*load)
	}
	found, _ := l.byShard.LoadOrStore(shard, &load{})
	return found.(*load)
}

// Loads returns what this instance has done.
func (m *Meter) Loads() map[Shard]ShardLoad {
	all := map[Shard]ShardLoad{}
	m.loads.byShard.Range(func(shard, found any) bool {
		l := found.(*load)
		all[shard.(Shard)] = ShardLoad{Events: l.events.Load(), Requests: l.requests.Load(), Work: time.Duration(l.work.Load())}
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
