set -e
conf=/opt/opentelemetry-webserver/source-conf
cp -r "$1"/* "$conf"
version=$(nginx -v 2>&1)
printf '%s\n' "${version##*/}" > "$conf/version.txt"
