// Package meiliindex indexes a vintage in a Meilisearch server for the duration of a benchmark. The index has a random name, so that no service
// shares or removes it.
//
//	Fill ──> Index, whose Engine takes its candidates from the server ──> Index.Remove
package meiliindex

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"lieudit/queries/address"
	"lieudit/queries/address/commune"
	"lieudit/queries/address/meili"
	"lieudit/queries/address/vintage"
	"lieudit/schemas/meiliclient"
)

// Index is a vintage in a Meilisearch server.
type Index struct {
	Engine *address.Engine

	server  meiliclient.Server
	indexes *meili.Indexes
	vintage *vintage.Vintage
}

// Fill indexes a vintage in the server at http://KEY@HOST:PORT. progress receives the number of documents. After an error nothing is left.
func Fill(ctx context.Context, url string, v *vintage.Vintage, communes *commune.Table, progress func(done, total int)) (*Index, error) {
	server, err := meiliclient.ParseServer(url)
	if err != nil {
		return nil, err
	}
	d := meili.New(server.Client(), "bench", time.Now, time.Now)
	d.Name = fmt.Sprintf("lieudit-bench-%x", rand.Uint64())
	x := &Index{Engine: address.NewOn(v, communes, d.Index(v)), server: server, indexes: d, vintage: v}
	if err := d.Fill(ctx, v, progress); err != nil {
		return nil, errors.Join(err, x.Remove(ctx))
	}
	return x, nil
}

// Asked returns how many requests the index has answered, and how many searches they contained.
func (x *Index) Asked() (requests, searches int64) { return x.indexes.RequestCounts() }

// Remove removes the index from the server, even if ctx has ended. It removes two indexes: that of the vintage, and that of the claims on it,
// which has the name of the directory.
func (x *Index) Remove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	err := x.indexes.Delete(ctx, x.vintage)
	_, claimsErr := x.server.Client().DeleteIndex(ctx, x.indexes.Name)
	return errors.Join(err, claimsErr)
}
