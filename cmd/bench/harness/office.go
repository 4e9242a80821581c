package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"lieudit/cmd/lieudit/adminclient"
	"lieudit/schemas/body"
	"lieudit/schemas/plan"
	"lieudit/schemas/token"
)

// AdminClient is the customer area of a service, entered as its operator.
type AdminClient struct{ client *adminclient.Client }

// AdminClient enters the customer area with the token that the first service of a log leaves in its folder.
func (in *Instance) AdminClient() (AdminClient, error) {
	text, err := os.ReadFile(filepath.Join(in.DataDir, "operator-token"))
	if err != nil {
		return AdminClient{}, err
	}
	c, err := adminclient.New("http://"+in.Area, strings.TrimSpace(string(text)))
	return AdminClient{c}, err
}

// OpenAccount opens an account with a number of requests.
func (o AdminClient) OpenAccount(ctx context.Context, id string, name plan.Name, quota int64) error {
	_, err := o.client.Post(ctx, "/accounts", body.OpenAccount{ID: id, Name: id, Plan: name, Quota: quota})
	return err
}

// IssueKey issues a secret key of an account.
func (o AdminClient) IssueKey(ctx context.Context, account, label string) (body.Key, error) {
	var key body.Key
	raw, err := o.client.Post(ctx, adminclient.JoinPath("", "accounts", account, "keys"), body.IssueKey{Kind: token.Secret, Label: label})
	if err != nil {
		return key, err
	}
	if err := json.Unmarshal(raw, &key); err != nil {
		return key, fmt.Errorf("reading the key: %w", err)
	}
	return key, nil
}

// MaxLag is how many positions the read model that is furthest behind has still to take in.
func (o AdminClient) MaxLag(ctx context.Context) (maxLag int64, err error) {
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
			maxLag = max(maxLag, int64(*p.Lag))
		}
	}
	return maxLag, nil
}
