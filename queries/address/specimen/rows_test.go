package specimen

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"lieudit/queries/address/ban"
)

func TestRowsAreThoseThatAreWritten(t *testing.T) {
	t.Parallel()
	o := Order{Addresses: 3000, Seed: 4}
	var got []ban.Row
	for row, err := range Rows(t.Context(), table(t), o) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, row)
	}
	if want := rows(t, o); !reflect.DeepEqual(got, want) {
		t.Errorf("got %d rows, want %d, or others", len(got), len(want))
	}
}

func TestRowsEndWhereTheyAreNoLongerRead(t *testing.T) {
	t.Parallel()
	read := 0
	for _, err := range Rows(t.Context(), table(t), Order{Addresses: 100_000, Seed: 4}) {
		if read++; err != nil || read == 10 {
			break
		}
	}
	if read != 10 {
		t.Errorf("%d rows, want 10", read)
	}
}

func TestRowsYieldTheErrorThatEndsThem(t *testing.T) {
	t.Parallel()
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx  context.Context
		o    Order
		want error
	}{"canceled": {canceled, Order{Addresses: 10}, context.Canceled}, "no rows": {t.Context(), Order{}, ErrNone}} {
		var got error
		for _, err := range Rows(c.ctx, table(t), c.o) {
			got = err
		}
		if !errors.Is(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
