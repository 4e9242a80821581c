package address

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"lieudit/eventstore/waitlimit"
	"lieudit/http/api"
	"lieudit/http/bodylimit"
	"lieudit/http/throttle"
	"lieudit/queries/address/atlas"
	"lieudit/schemas/access"
	"lieudit/schemas/plan"
	"lieudit/schemas/token"
)

// singleKeyRing is a ring with one key, which is always fresh.
type singleKeyRing struct{ hash token.Hash }

func (k singleKeyRing) FindKey(hash token.Hash, _ time.Time) (access.Grant, bool) {
	return access.Grant{KeyID: "bench", Kind: token.Secret, Account: "bench", Terms: access.Terms{Plan: plan.Business}}, hash == k.hash
}

func (k singleKeyRing) IsFresh(time.Time) bool { return true }

// measureHTTP measures every operation over HTTP, on as many connections as asked for; the clients share the machine.
func (o Options) measureHTTP(ctx context.Context, servedVintage *atlas.Atlas, f *questionSet, report func(string, Figure) error) (err error) {
	key := token.DefaultPrefixes.New(token.Secret)
	noLocations := api.Locations{} // no request of the benchmark concerns them
	handler := api.New(singleKeyRing{token.HashOf(key)}, api.Unmetered{}, servedVintage, noLocations, api.Env{
		Limiter: waitlimit.New(waitlimit.MaxRequests), Throttle: &throttle.Throttle{}, Bodies: bodylimit.NewBudget(api.MaxBodyBytes, api.MaxBodyBytes),
		Prefixes: token.DefaultPrefixes, Now: time.Now, Log: slog.New(slog.DiscardHandler), Version: "bench",
	})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	defer func() {
		err = errors.Join(err, s.Close())
		<-served // it says that it was closed
	}()
	c := client{
		base: "http://" + ln.Addr().String() + api.Base, key: key,
		Client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: o.Connections}},
	}
	defer c.CloseIdleConnections()
	for _, op := range operations() {
		o.Progress("http: "+op.name, 0, 0)
		figure, err := o.measureConcurrent(ctx, op, c, f)
		if err := errors.Join(err, report(op.name, figure)); err != nil {
			return err
		}
	}
	return nil
}

// client asks the API.
type client struct {
	*http.Client
	base, key string
}

// measureConcurrent asks on all connections at once, each one question after the other.
func (o Options) measureConcurrent(ctx context.Context, op operation, c client, f *questionSet) (Figure, error) {
	var asked atomic.Int64
	took := make([][]time.Duration, o.Connections)
	began := time.Now()
	var all errgroup.Group
	for n := range o.Connections {
		all.Go(func() error {
			for len(took[n]) == 0 || time.Since(began) < o.FigureDuration { // once at least: a turn may be short
				q := &f.questions[int(asked.Add(1))%len(f.questions)]
				at := time.Now()
				if err := c.send(ctx, op, q); err != nil {
					return err
				}
				took[n] = append(took[n], time.Since(at))
			}
			return nil
		})
	}
	err := all.Wait()
	var together []time.Duration
	for _, t := range took {
		together = append(together, t...)
	}
	return newFigure(together, time.Since(began)), err
}

// send sends a question and reads the answer to its end.
func (c client) send(ctx context.Context, op operation, q *question) error {
	path, parameters := op.path(q)
	values := url.Values{}
	for i := 0; i+1 < len(parameters); i += 2 {
		values.Set(parameters[i], parameters[i+1])
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path+"?"+values.Encode(), nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+c.key)
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusUnprocessableEntity {
		err = errors.Join(err, fmt.Errorf("%s answered %s", req.URL, resp.Status))
	}
	return errors.Join(err, resp.Body.Close())
}
