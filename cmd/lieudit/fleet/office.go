package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"lieudit/cmd/lieudit/backoffice"
	"lieudit/schemas/body"
	"lieudit/schemas/plan"
	"lieudit/schemas/token"
)

// Office is the customer area of a service, entered as its operator.
type Office struct{ client *backoffice.Client }

// Office enters the customer area with the token that the first service of a log leaves in its folder.
func (in *Instance) Office() (Office, error) {
	text, err := os.ReadFile(filepath.Join(in.Data, "operator-token"))
	if err != nil {
		return Office{}, err
	}
	c, err := backoffice.New("http://"+in.Area, strings.TrimSpace(string(text)))
	return Office{c}, err
}

// Open opens an account with a number of requests.
func (o Office) Open(ctx context.Context, id string, name plan.Name, quota int64) error {
	_, err := o.client.Post(ctx, "/accounts", body.OpenAccount{ID: id, Name: id, Plan: name, Quota: quota})
	return err
}

// Key issues a secret key of an account.
func (o Office) Key(ctx context.Context, account, label string) (body.Key, error) {
	var key body.Key
	raw, err := o.client.Post(ctx, backoffice.Path("", "accounts", account, "keys"), body.IssueKey{Kind: token.Secret, Label: label})
	if err != nil {
		return key, err
	}
	if err := json.Unmarshal(raw, &key); err != nil {
		return key, fmt.Errorf("reading the key: %w", err)
	}
	return key, nil
}

// Behind is how many positions the read model that is furthest behind has still to take in.
func (o Office) Behind(ctx context.Context) (most int64, err error) {
	raw, err := o.client.Get(ctx, "/projections", nil)
	if err != nil {
		return 0, err
	}
	var all body.Projections
	if err := json.Unmarshal(raw, &all); err != nil {
		return 0, fmt.Errorf("reading the projections: %w", err)
	}
	for _, p := range all.Results {
		if p.Lag != nil {
			most = max(most, int64(*p.Lag))
		}
	}
	return most, nil
}
