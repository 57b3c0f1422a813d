// Package dashboards reads the dashboard of contrib/dashboards, for the tests that hold it to the metrics and to a Prometheus.
package dashboards

import (
	"encoding/json"
	"fmt"
	"os"
)

// Panel is a panel that asks Prometheus. Its description says what it shows.
type Panel struct {
	Title       string     `json:"title"`
	Description string     `json:"description"`
	Type        string     `json:"type"`
	Datasource  Datasource `json:"datasource"`
	FieldConfig struct {
		Defaults struct {
			Unit string `json:"unit"`
		} `json:"defaults"`
	} `json:"fieldConfig"`
	Targets []Query `json:"targets"`
}

// Query is one of a panel's.
type Query struct {
	Datasource   Datasource `json:"datasource"`
	Expr         string     `json:"expr"`
	LegendFormat string     `json:"legendFormat"`
}

// Datasource is where a panel or a query asks.
type Datasource struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

// Dashboard is what a file of Grafana has.
type Dashboard struct {
	SchemaVersion int `json:"schemaVersion"`
	Templating    struct {
		List []struct {
			Name string `json:"name"`
			Type string `json:"type"`
		} `json:"list"`
	} `json:"templating"`
	Panels []Panel `json:"panels"` // but for the rows
}

// Read reads a dashboard of Grafana.
func Read(file string) (*Dashboard, error) {
	text, err := os.ReadFile(file) //nolint:gosec // a test names it
	if err != nil {
		return nil, err
	}
	var d Dashboard
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var panels []Panel
	for _, p := range d.Panels {
		if p.Type != "row" {
			panels = append(panels, p)
		}
	}
	d.Panels = panels
	return &d, nil
}
