printf '%s\n' "$OTEL_APACHE_AGENT_CONF" | sed "s/<<SID-PLACEHOLDER>>/$APACHE_SERVICE_INSTANCE_ID/g" \
  > "$conf/opentemetry_agent.conf"
printf '\nInclude %s/opentemetry_agent.conf\n' "$1" >> "$conf/httpd.conf"
