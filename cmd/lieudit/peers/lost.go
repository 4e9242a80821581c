package peers

import (
	"context"
	"net/http"
	"sync"
	"time"

	"lieudit/eventstore/clock"
	"lieudit/schemas/event"
)

// lostFinder takes instances off the list that no longer run and did not announce their end. It considers those that have not seen a
// release that this instance made.
type lostFinder struct {
	follower *Follower
	seen     map[string]time.Time // when a release was first seen here, by its secret
	asking   sync.WaitGroup
	mu       sync.Mutex
	asked    map[string]bool // pairs of instances and secrets of releases for which a request was sent
}

func newLostFinder(f *Follower) *lostFinder {
	return &lostFinder{follower: f, seen: map[string]time.Time{}, asked: map[string]bool{}}
}

// wait returns when no instance is being asked any more.
func (l *lostFinder) wait() { l.asking.Wait() }

// look finds the instances that have not seen a release within AckTimeout, and sends each a request.
func (l *lostFinder) look(ctx context.Context, view *fleetView) {
	for _, k := range l.follower.kinds {
		last, ok := view.Last(k.Kind)
		if !ok || last.Instance != l.follower.Instance {
			continue
		}
		since, isSeen := l.seen[last.Secret]
		if !isSeen {
			since = time.Now()
			l.seen[last.Secret] = since
		}
		if time.Since(since) < l.follower.AckTimeout {
			continue
		}
		for _, i := range view.Instances {
			if d, _ := view.Of(i.Instance, k.Kind); i.Instance != l.follower.Instance && d.Follows != last.Sum {
				l.ask(ctx, i, last.Secret)
			}
		}
	}
}

// ask sends a request to an instance's address, once per release, and takes the instance off the list if nothing answers. It does not
// wait for the answer.
func (l *lostFinder) ask(ctx context.Context, i event.InstanceAnnounced, release string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := i.Instance + " " + release
	if l.asked[key] {
		return
	}
	l.asked[key] = true
	l.asking.Go(func() {
		if l.follower.isAnswering(ctx, i) || ctx.Err() != nil {
			return
		}
		l.follower.Log.Warn("an instance does not run any more, and is taken off the list", "instance", i.Instance, "url", i.URL, "host", i.Host)
		if err := l.follower.Deployment.RemoveInstance(ctx, l.follower.metadata("does not answer"), i.Instance, true); err != nil {
			clock.Sleep(ctx, l.follower.AskInterval)
			l.mu.Lock()
			defer l.mu.Unlock()
			delete(l.asked, key) // ask again
		}
	})
}

// isAnswering reports whether an instance answers at its address, whatever it says.
func (f *Follower) isAnswering(ctx context.Context, i event.InstanceAnnounced) bool {
	if i.URL == "" {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, i.URL+pathPrefix, nil)
	if err != nil {
		return false
	}
	resp, err := f.client.Do(req)
	if err != nil {
		return false
	}
	resp.Body.Close()
	found := resp.Header.Get(instanceHeader)
	return found == "" || found == i.Instance
}
