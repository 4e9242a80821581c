package address

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"lieudit/cmd/bench/measure"
	"lieudit/eventstore/waitlimit"
	"lieudit/http/api"
	"lieudit/http/budget"
	"lieudit/http/clientip"
	"lieudit/http/routing"
	"lieudit/http/throttle"
	"lieudit/queries/address/live"
	"lieudit/schemas/grant"
	"lieudit/schemas/plan"
	"lieudit/schemas/token"
)

// singleKeyRing is a key ring with one secret key of a BUSINESS account. It does not read a log, so it is always fresh and no
// request waits for it.
type singleKeyRing struct{ hash token.Hash }

func (k singleKeyRing) FindKey(hash token.Hash, _ time.Time) (grant.Grant, bool) {
	return grant.Grant{KeyID: "bench", Kind: token.Secret, Account: "bench", Terms: grant.Terms{Plan: plan.Business}}, hash == k.hash
}

func (k singleKeyRing) IsFresh(time.Time) bool { return true }

// measureHTTP measures every operation over HTTP. The server runs in this process: the API with its checks of keys and limits, but without
// counting requests. Clients and server share the processors. 422 is accepted, because it is the answer to a question that does not contain an
// address.
func (r *run) measureHTTP(ctx context.Context, servedVintage *live.Vintage, questions []question) (err error) {
	key := token.DefaultPrefixes.New(token.Secret)
	noLocations := api.Locations{} // no request of the benchmark concerns them
	handler := api.New(singleKeyRing{token.HashOf(key)}, api.Unmetered{}, servedVintage, routing.NoRouter{}, noLocations, api.Env{
		Limiter: waitlimit.New(waitlimit.MaxRequests), Throttle: &throttle.Throttle{}, Clients: clientip.NewFinder(nil, slog.New(slog.DiscardHandler)),
		Bodies:   budget.New(api.MaxBodyBytes, api.MaxBodyBytes),
		Answers:  budget.New(api.MaxBodyBytes, api.MaxBodyBytes),
		Lists:    api.NewWorkers(),
		Workers:  api.NewWorkers(),
		Searches: api.NewSearches(),
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
		<-served // its error says that the server was closed
	}()
	address := ln.Addr().String()
	for _, op := range operations() {
		r.Progress("http: "+op.name, 0, 0)
		f, err := measure.Load{
			Address: address, Connections: r.Connections, Duration: r.FigureDuration, Accept: []int{http.StatusOK, http.StatusUnprocessableEntity},
			Request: func(connection, n int) []byte {
				q := &questions[(n*r.Connections+connection)%len(questions)]
				return measure.EncodeGet(address, api.Base+op.path(q), key)
			},
		}.Run(ctx)
		if err != nil {
			return fmt.Errorf("http: %s: %w", op.name, err)
		}
		if err := r.Report(f.With(r.labels("http", op.name)...)); err != nil {
			return err
		}
	}
	return nil
}
